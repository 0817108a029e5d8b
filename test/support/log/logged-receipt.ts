// One signed receipt that names a transparency log, its disclosures, its place in that log: as files that a verifier gets.
import { toBase64 } from '#src/domain/encoding.ts';
import { disclose } from '#src/domain/receipt/disclosures.ts';
import { shownSignature } from '#src/domain/receipt/payload.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import { checkpointText } from '#src/domain/transparency/checkpoint.ts';
import { signNote } from '#src/domain/transparency/note.ts';
import { tlogProofText } from '#src/domain/transparency/tlog-proof.ts';
import { payloadOf, signed } from '#test/support/given/given-receipt.ts';
import { sha256, testKey } from '#test/support/given/primitives.ts';
import { MTH, PATH } from '#test/support/witness/rfc6962.ts';

export const ORIGIN = 'relay.example/receipts';
export const key = testKey();
export const checkpointKey = testKey({ purpose: 'checkpoint' });
export const stranger = testKey();
export const keys = { keys: [key, checkpointKey].map(({ record }) => toJwk(record)) };

const opened = disclose(new Uint8Array(16).fill(7), 'target_url', 'https://target.example/<hook>');
const other = disclose(new Uint8Array(16).fill(7), 'target_url', 'https://other.example/');
/** One that the receipt commits to, and one that it does not. */
export const disclosures = [opened.text];
export const foreignDisclosures = [other.text];

const base = await payloadOf();
export const payload = {
  ...base,
  v: 2 as const,
  request: { ...base.request, _sd: [...base.request._sd.slice(1), opened.commitment].sort() },
  log: { origin: ORIGIN, mmdSeconds: 3600 },
};
export const jws = await signed(payload, key);

/** As GET /api/receipts/{id} answers. */
export const receiptAnswer = (changes: object = {}) => ({
  id: payload.receiptId,
  keyId: key.keyId,
  payload,
  jws,
  signature: shownSignature(jws),
  verified: true,
  checkpoint: null,
  links: {},
  ...changes,
});

/** As POST /api/execute/webhook answers. */
export const executionAnswer = (changes: object = {}) => ({
  mode: payload.mode,
  job: { id: payload.jobId, status: payload.outcome.status, attempts: payload.attempts.length },
  receipt: { id: payload.receiptId, keyId: key.keyId, jws, signature: shownSignature(jws) },
  disclosures,
  ...changes,
});

/** Signed by the checkpoint key over these leaves. */
export async function checkpointOf(
  leaves: readonly Uint8Array[],
  by = checkpointKey,
  origin = ORIGIN,
): Promise<string> {
  const text = checkpointText({ origin, size: leaves.length, root: MTH(leaves) });
  const name = { name: origin, publicKey: new Uint8Array(Buffer.from(by.x, 'base64url')) };
  return signNote(text, name, by.sign);
}

export const LEAVES: readonly Uint8Array[] = ['first', 'second', jws, 'fourth', 'fifth'].map((text) =>
  sha256(text),
);
export const INDEX = 2;
export const ROOT = toBase64(MTH(LEAVES));
export const checkpoint = await checkpointOf(LEAVES);
export const proofBy = (note: string): string =>
  tlogProofText({ index: INDEX, path: PATH(INDEX, LEAVES), checkpoint: note });
export const proof = proofBy(checkpoint);

/** The same text with one letter of the middle changed. */
export function tampered(text: string): string {
  const at = Math.floor(text.length / 2);
  return `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
}

/** The JWS with another payload under its signature. */
export function withPayload(changed: unknown): string {
  const [head, , signature] = jws.split('.');
  return `${head}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}.${signature}`;
}
