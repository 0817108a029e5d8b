// Whether a receipt is in the transparency log: by a proof file, or pending until the time that it promises.

import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { TRANSPARENCY } from '../limits.ts';
import { receiptLeafData } from '../transparency/leaves.ts';
import { verifyTlogProof } from '../transparency/tlog-proof.ts';
import { logOf, type ReceiptPayload } from './payload.ts';
import type { Check, Primitives } from './verify.ts';

export type LogFacts = {
  /** Text of the proof file (C2SP tlog-proof); null where the log gave none. */
  readonly proof: string | null;
  /** Unix seconds. */
  readonly now: number;
};

/**
 * A receipt is waited for at most a day, whatever it promises, and not at all where it dates itself more than a day
 * ahead: else a relay that never logs it could have its absence called pending for as long as it likes.
 */
const PATIENCE_SECONDS = 86_400;

/**
 * Ok with `details.pending` until `details.dueBy`, Unix seconds: as the receipt promises, or as every relay does where it
 * promises nothing. False for a proof that does not hold, where it is late, and where its own date is far ahead of now
 * (`problem`: `future`).
 */
export async function logCheck(
  jws: string,
  payload: ReceiptPayload | null,
  log: LogFacts,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<Check> {
  const name = 'receipt_logged';
  if (payload === null) return { name, ok: false };
  if (log.proof === null) {
    const { mmdSeconds } = logOf(payload) ?? TRANSPARENCY;
    const dueBy = payload.iat + Math.min(mmdSeconds, PATIENCE_SECONDS);
    if (payload.iat > log.now + PATIENCE_SECONDS)
      return { name, ok: false, details: { pending: false, dueBy, problem: 'future' } };
    const pending = log.now <= dueBy;
    return { name, ok: pending, details: { pending, dueBy } };
  }
  const leafData = receiptLeafData(jws);
  const expected = { leafData, origin: logOf(payload)?.origin ?? null };
  const verdict = await verifyTlogProof(log.proof, expected, keys, primitives);
  if (!verdict.ok) return { name, ok: false, details: { pending: false, problem: verdict.problem } };
  const { origin, size } = verdict.checkpoint;
  return { name, ok: true, details: { pending: false, origin, index: verdict.index, size } };
}
