// The check `receipt_witnessed`: a quorum of the reader's witnesses has cosigned the checkpoint of the proof (C2SP tlog-policy).
import type { Primitives } from '../signing-keys/keys.ts';
import { TRANSPARENCY } from '../transparency/checkpoint.ts';
import { judgeSignatures } from '../transparency/cosignature.ts';
import { type Note, parseNote } from '../transparency/note.ts';
import { parseTlogProof } from '../transparency/tlog-proof.ts';
import { cosignaturesOf, judgeQuorum, type WitnessPolicy } from '../transparency/witness-policy.ts';
import type { LogCheck, WitnessCheck, WitnessProblem } from './report.ts';

export type WitnessFacts = {
  /** Unix seconds at which the receipt was issued. */
  readonly iat: number;
  /** Text of the proof file; null if the log gave none. */
  readonly proof: string | null;
  /** Unix seconds. */
  readonly now: number;
  readonly policy: WitnessPolicy;
  /** The log's own policy, whose quorum may be missing until it is due. Otherwise a reader's, which is satisfied or not. */
  readonly isOwnPolicy?: boolean;
  /** Whether the receipt is in the log: a quorum for a tree without it shows nothing. */
  readonly logged: LogCheck;
};

/**
 * Ok with the names and times of the witnesses that have cosigned. `details.pending`: the log owes no proof yet, or only the quorum
 * is missing until `details.dueBy`; that is ok by the log's own policy, and fails by a reader's. A time is a witness's own
 * statement, in Unix seconds.
 */
export async function witnessCheck(facts: WitnessFacts, primitives: Primitives): Promise<WitnessCheck> {
  const { iat, proof, now, policy, isOwnPolicy = false, logged } = facts;
  const name = 'receipt_witnessed';
  const note = proof === null || !logged.ok ? null : parseNote(parseTlogProof(proof)?.checkpoint ?? '');
  const dueBy = Math.max(iat + TRANSPARENCY.witnessMmdSeconds, logDueBy(logged) ?? 0);
  if (note === null) {
    const { signed, missing } = judgeQuorum(policy, new Set());
    const details = { quorum: false, names: signed, times: [], missing, dueBy };
    const pending = logged.ok;
    return pending && isOwnPolicy
      ? { name, ok: true, details: { pending, ...details } }
      : { name, ok: false, details: { pending, ...details, problem: 'proof' } };
  }
  const cosignatures = await cosignaturesOf(note, policy, primitives);
  const { met, signed, missing } = judgeQuorum(policy, new Set(cosignatures.valid.map((one) => one.name)));
  const times = cosignatures.valid.map(({ time }) => time);
  const details = { quorum: met, names: signed, times, missing, dueBy };
  const problem = await problemOf(note, policy, { ...cosignatures, met }, primitives);
  if (problem === null) return { name, ok: true, details: { pending: false, ...details } };
  const pending = problem === 'quorum' && now <= dueBy && iat <= now + TRANSPARENCY.mmdSeconds;
  return { name, ok: pending && isOwnPolicy, details: { pending, ...details, problem } };
}

function logDueBy({ details }: LogCheck): number | null {
  return details !== undefined && 'dueBy' in details ? details.dueBy : null;
}

async function problemOf(
  note: Note,
  { logs }: WitnessPolicy,
  { met, invalid, unsupported }: { met: boolean; invalid: readonly string[]; unsupported: readonly string[] },
  primitives: Primitives,
): Promise<WitnessProblem | null> {
  if (logs.length > 0) {
    const keys = logs.map(({ key }) => key);
    const verdicts = await judgeSignatures(note, keys, primitives);
    const valid = verdicts.some(({ state }) => state === 'valid');
    if (!valid || verdicts.some(({ state }) => state === 'invalid')) return 'log';
  }
  // C2SP signed-note: a note with a signature of a known key that does not verify should be rejected.
  if (invalid.length > 0) return 'cosignature';
  if (met) return null;
  return unsupported.length > 0 ? 'unsupported' : 'quorum';
}
