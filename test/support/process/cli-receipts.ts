// One signed receipt in every form that the command line accepts, as files in a temporary folder.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ReceiptPayload, shownSignature } from '#src/domain/receipt/payload.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import { payloadOf, signed } from '#test/support/given/given-receipt.ts';
import { type TestKey, testKey } from '#test/support/given/primitives.ts';

export const key = testKey();
export const stranger = testKey();
export const payload = await payloadOf();
export const jws = await signed(payload, key);
export const keySet = (...keys: readonly TestKey[]) =>
  JSON.stringify({ keys: keys.map(({ record }) => toJwk(record)) });
export type ReceiptFolder = {
  readonly path: string;
  /** Key set with the key that signed the receipt. */
  readonly keys: string;
  /** Writes a file and returns its path. */
  file(name: string, content: string | Uint8Array): string;
  /** For the test file's `after`. */
  remove(): void;
};

/** A folder for one test file. */
export function receiptFolder(): ReceiptFolder {
  const path = mkdtempSync(join(tmpdir(), 'relay-verify-test-'));
  const file: ReceiptFolder['file'] = (name, content) => {
    writeFileSync(join(path, name), content);
    return join(path, name);
  };
  return {
    path,
    keys: file('jwks.json', keySet(key)),
    file,
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** As GET /api/receipts/{id} answers. */
export function receiptAnswer(of: string, shown: ReceiptPayload = payload) {
  const { receiptId: id } = shown;
  return {
    id,
    keyId: key.keyId,
    payload: shown,
    jws: of,
    signature: shownSignature(of),
    verified: true,
    links: {},
  };
}

/** As POST /api/execute/webhook answers. */
export function executionAnswer(of: string) {
  const { jobId, receiptId, outcome, attempts, decisionId, payment } = payload;
  if (payment === null) throw new Error('the receipt has no payment');
  const { network, asset, amount, payTo, payer, transaction } = payment;
  const { status, responseStatus, errorCategory } = outcome;
  return {
    mode: payload.mode,
    idempotentReplay: false,
    job: {
      id: jobId,
      status,
      attempts: attempts.length,
      decisionId,
      responseStatus,
      errorCategory,
      createdAt: 'x',
    },
    receipt: { id: receiptId, signature: shownSignature(of), replay: false, jws: of, keyId: key.keyId },
    payment: { network, asset, amount, payTo, payer, transaction },
    disclosures: [],
    links: {},
  };
}
