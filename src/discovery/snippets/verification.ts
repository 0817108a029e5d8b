// Whether a receipt holds: by the service's report, and without trusting the service.

import { addressOf } from '#src/discovery/documents/document-parts.ts';
import type { Snippet, SnippetGroup } from '#src/discovery/documents/snippets.ts';
import { DONE_WHEN, FAILED_VERIFIES } from '../completion.ts';
import type { Facts } from '../facts.ts';
import { ROUTES } from '../routes.ts';
import { beforeParameter } from './pieces.ts';

export function verification(facts: Facts): SnippetGroup {
  return {
    id: 'verification',
    title: 'Verify',
    description: `An action is done only when ${DONE_WHEN}. ${FAILED_VERIFIES} Each snippet judges both; it takes a receipt id, and the newest public proof where none is given.`,
    snippets: [curlVerify(facts), pythonVerify(facts), typescriptVerifyOffline(facts)],
  };
}

const recent = (facts: Facts) => addressOf(facts, ROUTES.recentProofs);
const receipts = (facts: Facts) => beforeParameter(facts, ROUTES.receipt);
const reports = (facts: Facts) => beforeParameter(facts, ROUTES.verifyReceipt);

const curlVerify = (facts: Facts): Snippet => ({
  id: 'curl-verify',
  title: 'Read the report of a receipt with curl',
  language: 'shell',
  description:
    'Free. Takes the receipt id from RECEIPT_ID; prints the report, and ends with a failure where the action is not done.',
  code: `get() { curl -sS --fail-with-body "$1"; }
stop() { printf '%s\\n' "$1" >&2; exit 1; }

if [ -z "$RECEIPT_ID" ]; then
  proofs=$(get '${recent(facts)}') || stop "$proofs"
  RECEIPT_ID=$(printf '%s' "$proofs" | grep -o 'rcpt_[0-9a-z]*' | head -n 1)
fi
[ -n "$RECEIPT_ID" ] || stop 'nothing was executed yet'

report=$(get "${reports(facts)}$RECEIPT_ID") || stop "$report"
receipt=$(get "${receipts(facts)}$RECEIPT_ID") || stop "$receipt"
printf '%s\\n' "$report"
# Done: no check failed, the signature verified, and the job that the receipt is of succeeded.
case $report in *'"ok":false'*) stop 'NOT verified' ;; esac
case $report in *'"signatureVerified":true'*) ;; *) stop 'NOT verified' ;; esac
case $receipt in *'"status":"succeeded"'*) ;; *) stop 'the job failed: verified, and not done' ;; esac
`,
});

const pythonVerify = (facts: Facts): Snippet => ({
  id: 'python-verify',
  title: 'Check a receipt with Python',
  language: 'python',
  description:
    'Free, standard library only. Takes the receipt id as its argument; exits with 1 where a check or the job failed.',
  code: `import json
import sys
from urllib.request import urlopen


def get(url):
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)


def newest():
    proofs = get("${recent(facts)}")["proofs"]
    return next((proof["receiptId"] for proof in proofs if proof["receiptId"]), None)


receipt_id = sys.argv[1] if len(sys.argv) > 1 else newest()
if receipt_id is None:
    sys.exit("nothing was executed yet")

report = get("${reports(facts)}" + receipt_id)
for check in report["checks"]:
    print("ok  " if check["ok"] else "FAIL", check["name"])
proven = report["ok"] and report["signatureVerified"] and all(check["ok"] for check in report["checks"])
# A failed job has a genuine receipt, too.
status = get("${receipts(facts)}" + receipt_id)["payload"]["outcome"]["status"]
print(receipt_id, "verified" if proven else "NOT verified", status)
sys.exit(0 if proven and status == "succeeded" else 1)
`,
});

const typescriptVerifyOffline = (facts: Facts): Snippet => ({
  id: 'typescript-verify-offline',
  title: 'Verify the signature yourself with jose',
  language: 'typescript',
  description:
    'Trusts no report: the receipt is a JWS, the keys are public. Keep both, and the receipt verifies without this service. Takes the receipt id as its argument; exits with 1 where the job failed.',
  code: `// npm install jose
import process from 'node:process';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';

async function get<T>(url: string): Promise<T> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(response.status + ' ' + (await response.text()));
  return (await response.json()) as T;
}

const newest = async () => {
  const { proofs } = await get<{ proofs: { receiptId: string | null }[] }>('${recent(facts)}');
  return proofs.find(({ receiptId }) => receiptId !== null)?.receiptId;
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
// A failed job has a genuine receipt, too.
if (receipt.outcome.status !== 'succeeded') process.exitCode = 1;
`,
});
