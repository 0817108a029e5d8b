// A buyer that signs nothing before price, network, payee and resource fit its own terms.
import { addressOf } from '#src/discovery/documents/document-parts.ts';
import type { Snippet, SnippetGroup } from '#src/discovery/documents/snippets.ts';
import type { Facts } from '../facts.ts';
import { ACTION } from '../paid-routes.ts';
import { ROUTES } from '../routes.ts';
import { tsLiteral } from './literals.ts';
import { checkedClient, PAYING_IMPORTS, payingNote, READ_RESULT, VERIFY_RESULT } from './paying.ts';
import { sharedKey, termsOf } from './pieces.ts';
import { NO_PYTHON_PAYMENT } from './python.ts';

export function buyerPolicyGroup(facts: Facts): SnippetGroup {
  return {
    id: 'buyer-policy',
    title: 'Pay by your own terms',
    description:
      'A 402 is a request, not an order: price, network, payee and resource are compared with what the buyer wrote down before anything is signed.',
    snippets: [curlTerms(facts), pythonBuyerPolicy(facts), typescriptBuyerPolicy(facts)],
  };
}

const curlTerms = (facts: Facts): Snippet => ({
  id: 'curl-terms',
  title: 'Read the terms with curl',
  language: 'shell',
  description:
    'A call without body and payment executes nothing. Prints the challenge of x402 version 2, which is base64 in a header; in demo mode there is none, and it prints nothing.',
  code: `curl -sS -o /dev/null -D - -X POST ${addressOf(facts, ROUTES.execute)} |
  grep -i '^payment-required:' | cut -d ' ' -f 2 | tr -d '\\r' | base64 -d
`,
});

function pythonBuyerPolicy(facts: Facts): Snippet {
  const { network, asset, payTo, maxAmount } = termsOf(facts);
  return {
    id: 'python-buyer-policy',
    title: 'Check the terms of a 402 with Python',
    language: 'python',
    description: `Exits with 1 where the terms are not what the buyer accepts. In demo mode nothing is asked for: the call goes through without payment. ${NO_PYTHON_PAYMENT}`,
    code: `import base64
import json
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

RESOURCE = "${addressOf(facts, ROUTES.execute)}"
# What this buyer accepts. Keep it in your own configuration.
NETWORK = "${network}"
ASSET = "${asset}"
PAY_TO = "${payTo}"
MAX_AMOUNT = ${maxAmount}  # atomic units of the asset: ${facts.offer.price}


def challenge(url):
    """The terms of an unpaid call; None in demo mode. A call without a body executes nothing."""
    try:
        urlopen(Request(url, method="POST"), timeout=30)
    except HTTPError as error:
        if error.code == 402:
            return json.loads(base64.b64decode(error.headers["PAYMENT-REQUIRED"]))
        if error.code not in (400, 415):
            sys.exit(f"{error.code} {error.read().decode()}")
    return None


asked = challenge(RESOURCE)
if asked is None:
    print("demo mode: nothing is asked for")
    sys.exit(0)

for terms in asked["accepts"]:
    checks = {
        "price": int(terms["amount"]) <= MAX_AMOUNT,
        "asset": terms["asset"].lower() == ASSET.lower(),
        "network": terms["network"] == NETWORK,
        "payTo": terms["payTo"].lower() == PAY_TO.lower(),
        "resource": asked["resource"]["url"] == RESOURCE,
    }
    wrong = [name for name, fits in checks.items() if not fits]
    if not wrong:
        print("fits:", json.dumps(terms))
        sys.exit(0)
    print("not what this buyer accepts:", ", ".join(wrong))
sys.exit(1)
`,
  };
}

const typescriptBuyerPolicy = (facts: Facts): Snippet => ({
  id: 'typescript-buyer-policy',
  title: 'Pay by your own terms with @x402/fetch',
  language: 'typescript',
  description: `A hook of the stock client compares price, network, payee and resource before it signs. ${payingNote(facts)}${sharedKey(facts)}`,
  code: `// npm install @x402/fetch @x402/evm viem
${PAYING_IMPORTS}

const route = '${addressOf(facts, ROUTES.execute)}';

${checkedClient(facts, 'route')}
const payingFetch = wrapFetchWithPayment(fetch, client);

const response = await payingFetch(route, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(${tsLiteral(ACTION, '  ')}),
});
${READ_RESULT}

${VERIFY_RESULT}`,
});
