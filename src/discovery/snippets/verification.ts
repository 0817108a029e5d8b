// Whether a receipt holds: by the service's report, and without trusting the service.
import { addressOf } from '../document-parts.ts';
import type { Facts } from '../facts.ts';
import { ROUTES } from '../routes.ts';
import type { Snippet, SnippetGroup } from '../snippets.ts';
import { beforeParameter } from './pieces.ts';

export function verification(facts: Facts): SnippetGroup {
  return {
    id: 'verification',
    title: 'Verify',
    description:
      'A call counts as done when its report has ok and signatureVerified true and every check ok. Each snippet takes a receipt id, and the newest public proof where none is given.',
    snippets: [curlVerify(facts), pythonVerify(facts), typescriptVerifyOffline(facts)],
  };
}

const newest = (facts: Facts) => `${addressOf(facts, ROUTES.recentProofs)}?limit=1`;
const receipts = (facts: Facts) => beforeParameter(facts, ROUTES.receipt);
const reports = (facts: Facts) => beforeParameter(facts, ROUTES.verifyReceipt);

const curlVerify = (facts: Facts): Snippet => ({
  id: 'curl-verify',
  title: 'Read the report of a receipt with curl',
  language: 'shell',
  description: 'Free. Takes the receipt id from RECEIPT_ID.',
  code: `newest() { curl -sS '${newest(facts)}' | grep -o 'rcpt_[0-9a-z]*' | head -n 1; }

curl -sS --fail-with-body "${reports(facts)}\${RECEIPT_ID:-$(newest)}"
`,
});

const pythonVerify = (facts: Facts): Snippet => ({
  id: 'python-verify',
  title: 'Check a receipt with Python',
  language: 'python',
  description:
    'Free, standard library only. Takes the receipt id as its argument; exits with 1 where a check fails.',
  code: `import json
import sys
from urllib.request import urlopen


def get(url):
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)


if len(sys.argv) > 1:
    receipt_id = sys.argv[1]
else:
    proofs = get("${newest(facts)}")["proofs"]
    receipt_id = proofs[0]["receiptId"] if proofs else sys.exit("nothing was executed yet")

report = get("${reports(facts)}" + receipt_id)
for check in report["checks"]:
    print("ok  " if check["ok"] else "FAIL", check["name"])
proven = report["ok"] and report["signatureVerified"] and all(check["ok"] for check in report["checks"])
print(receipt_id, "verified" if proven else "NOT verified")
sys.exit(0 if proven else 1)
`,
});

const typescriptVerifyOffline = (facts: Facts): Snippet => ({
  id: 'typescript-verify-offline',
  title: 'Verify the signature yourself with jose',
  language: 'typescript',
  description:
    'Trusts no report: the receipt is a JWS, the keys are public. Keep both, and the receipt verifies without this service. Takes the receipt id as its argument.',
  code: `// npm install jose
import process from 'node:process';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';

async function get<T>(url: string): Promise<T> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(response.status + ' ' + (await response.text()));
  return (await response.json()) as T;
}

const newest = async () => {
  const { proofs } = await get<{ proofs: { receiptId: string | null }[] }>('${newest(facts)}');
  return proofs[0]?.receiptId;
};
const receiptId = process.argv[2] ?? (await newest());
if (!receiptId) throw new Error('nothing was executed yet');

const { jws } = await get<{ jws: string }>('${receipts(facts)}' + receiptId);
const keys = await get<JSONWebKeySet>('${addressOf(facts, ROUTES.jwks)}');

// From here on nothing is asked of the service.
const { payload } = await compactVerify(jws, createLocalJWKSet(keys), { algorithms: ['EdDSA'] });
const receipt = JSON.parse(new TextDecoder().decode(payload)) as {
  receiptId: string;
  jobId: string;
  outcome: { status: string; responseStatus: number | null };
};
if (receipt.receiptId !== receiptId) throw new Error('a receipt of something else');
console.log('verified', receipt.receiptId, receipt.jobId, receipt.outcome.status, receipt.outcome.responseStatus);
`,
});
