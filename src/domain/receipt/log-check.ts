// Whether a receipt is in the transparency log: by a proof file, or pending until the time that it promises.
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { TRANSPARENCY } from '../limits.ts';
import { receiptLeafData } from '../transparency/leaves.ts';
import { verifyTlogProof } from '../transparency/tlog-proof.ts';
import { logOf, type ReceiptPayload } from './payload.ts';
import type { Check, Primitives } from './report.ts';

export type LogFacts = {
  /** Text of the proof file (C2SP tlog-proof); null if the log gave none. */
  readonly proof: string | null;
  /** Unix seconds. */
  readonly now: number;
};

/**
 * A receipt is pending for at most a day, whatever it promises, and not at all if its date is more than a day ahead.
 * Otherwise a relay that never logs a receipt could keep it pending without limit.
 */
const MAX_PENDING_SECONDS = 86_400;

/**
 * Ok with `details.pending` until `details.dueBy` (Unix seconds): the time that the receipt promises, or the default if it
 * promises none. False if the proof does not hold, if the receipt is late, or if its date is far ahead of now (`problem`:
 * `future`).
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
    const dueBy = payload.iat + Math.min(mmdSeconds, MAX_PENDING_SECONDS);
    if (payload.iat > log.now + MAX_PENDING_SECONDS)
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
