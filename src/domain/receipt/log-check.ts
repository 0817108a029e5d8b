// Whether a receipt stands in the transparency log: by a proof file, or, while it is young, by its promise alone.
import { receiptLeafData } from '../transparency/leaves.ts';
import { verifyTlogProof } from '../transparency/tlog-proof.ts';
import type { KeyRecord } from './keys.ts';
import type { ReceiptPayload } from './payload.ts';
import type { Check, Primitives } from './verify.ts';

export type LogFacts = {
  /** Text of the proof file (C2SP tlog-proof); null where the log gave none. */
  readonly proof: string | null;
  /** Unix seconds. */
  readonly now: number;
};

/**
 * Ok with `details.pending` until the promised time, `details.dueBy` in Unix seconds; null where the receipt, of before
 * there was a log, promises none. False only for a proof that does not hold, or where it is late.
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
    const dueBy = payload.log === undefined ? null : payload.iat + payload.log.mmdSeconds;
    const pending = dueBy === null || log.now <= dueBy;
    return { name, ok: pending, details: { pending, dueBy } };
  }
  const leafData = await receiptLeafData(jws, primitives.sha256);
  const expected = { leafData, origin: payload.log?.origin ?? null };
  const verdict = await verifyTlogProof(log.proof, expected, keys, primitives);
  if (!verdict.ok) return { name, ok: false, details: { pending: false, problem: verdict.problem } };
  const { origin, size } = verdict.checkpoint;
  return { name, ok: true, details: { pending: false, origin, index: verdict.index, size } };
}
