// The free decision first, then the guided route that executes what it approved.
import { addressOf } from '#src/discovery/documents/document-parts.ts';
import type { Snippet, SnippetGroup } from '#src/discovery/documents/snippets.ts';
import type { Facts } from '../facts.ts';
import { ACTION } from '../paid-routes.ts';
import { ROUTES } from '../routes.ts';
import { pyLiteral, shellJson, tsLiteral } from './literals.ts';
import { checkedClient, PAYING_IMPORTS, payingNote, READ_RESULT, VERIFY_RESULT } from './paying.ts';
import { buyerPolicy } from './pieces.ts';
import { NO_PYTHON_PAYMENT, PY_IMPORTS, PY_POST } from './python.ts';

export function decisionFirst(facts: Facts): SnippetGroup {
  return {
    id: 'decision-first',
    title: 'Decide, then pay',
    description:
      'A free, recorded decision on an action and a buyer policy. Where it recommends pay_and_execute, the guided route executes exactly that action, once per payer.',
    snippets: [curlDecide(facts), pythonDecide(facts), typescriptGuided(facts)],
  };
}

const curlDecide = (facts: Facts): Snippet => ({
  id: 'curl-decide',
  title: 'Decide before paying, with curl',
  language: 'shell',
  description: 'Free: judges the action against a buyer policy and recommends whether to pay.',
  code: `curl -sS --fail-with-body ${addressOf(facts, ROUTES.decide)} \\
  -H 'content-type: application/json' \\
  -d ${shellJson({ action: ACTION, buyerPolicy: buyerPolicy(facts) })}
`,
});

const pythonDecide = (facts: Facts): Snippet => ({
  id: 'python-decide',
  title: 'Decide before paying, with Python',
  language: 'python',
  description: `Free. ${NO_PYTHON_PAYMENT}`,
  code: `${PY_IMPORTS}


${PY_POST}


decision = post("${addressOf(facts, ROUTES.decide)}", {
    "action": ${pyLiteral(ACTION, '    ')},
    "buyerPolicy": ${pyLiteral(buyerPolicy(facts), '    ')},
})
print(decision["decisionId"], decision["recommendation"], decision["confidence"])
for found in decision["blockingIssues"] + decision["warnings"]:
    print("-", found["code"], found["message"])
if decision["recommendation"] != "pay_and_execute":
    sys.exit(1)
`,
});

const typescriptGuided = (facts: Facts): Snippet => ({
  id: 'typescript-guided',
  title: 'Decide, then pay and execute with @x402/fetch',
  language: 'typescript',
  description: `Price, network, payee and resource are compared with the buyer’s own terms before anything is signed. ${payingNote(facts)}`,
  code: `// npm install @x402/fetch @x402/evm viem
${PAYING_IMPORTS}

const guided = '${addressOf(facts, ROUTES.executeGuided)}';

${checkedClient(facts, 'guided')}
const payingFetch = wrapFetchWithPayment(fetch, client);

const post = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

// The key: an id of your own task, the same when you repeat it.
const action = ${tsLiteral(ACTION).replace(`'${ACTION.idempotencyKey}'`, "'task-' + crypto.randomUUID()")};
const buyerPolicy = ${tsLiteral(buyerPolicy(facts))};

const decided = await fetch('${addressOf(facts, ROUTES.decide)}', post({ action, buyerPolicy }));
if (!decided.ok) throw new Error(decided.status + ' ' + (await decided.text()));
const decision = (await decided.json()) as { decisionId: string; recommendation: string };
console.log(decision.decisionId, decision.recommendation);
if (decision.recommendation !== 'pay_and_execute') process.exit(1);

const response = await payingFetch(guided, post({ decisionId: decision.decisionId, action }));
${READ_RESULT}

${VERIFY_RESULT}`,
});
