// Witnesses in an audit: the auditor's policy says whose cosignatures count. They cannot be forged by the relay, so a checkpoint
// with a quorum counts like one that the auditor kept since the time that the quorum states.
import { type Fault, fault } from '#src/domain/audit/finding.ts';
import type { KeptCheckpoint } from '#src/domain/audit/judge-checkpoint.ts';
import type { EventOf } from '#src/domain/events.ts';
import type { Primitives } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { parseNote, parseSignatureLines } from '#src/domain/transparency/note.ts';
import {
  cosignaturesOf,
  judgeQuorum,
  type PolicyCosignature,
  type WitnessPolicy,
} from '#src/domain/transparency/witness-policy.ts';

const HOUR_SECONDS = 3600;

export type WitnessFold = {
  readonly checkpoints: number;
  readonly hours: readonly (readonly [hour: number, size: WitnessedSize])[];
};

/** `policy` null: the auditor has none, nothing is verified. */
export function auditWitnesses(
  policy: WitnessPolicy | null,
  primitives: Primitives,
  from: WitnessFold | undefined,
) {
  /** For each hour (of Unix time) the largest tree that a quorum had cosigned by then: memory does not grow with the log. */
  const hours = new Map<number, WitnessedSize>(from?.hours);
  let checkpoints = from?.checkpoints ?? 0;

  /** Verifies the cosignatures of a checkpoint by the policy's witnesses. `fits`: the record contains the checkpoint. */
  async function verify(
    note: string,
    lines: readonly string[],
    { of: subject, fits }: { readonly of: string; readonly fits: boolean },
  ): Promise<readonly Fault[]> {
    const parsed = policy === null ? null : parseNote(note);
    const size = parseCheckpoint(note)?.size;
    if (policy === null || parsed === null || size === undefined) return [];
    const more = lines.flatMap((line) => parseSignatureLines(`${line}\n`) ?? []);
    const whole = { text: parsed.text, signatures: [...parsed.signatures, ...more] };
    const { valid, invalid } = await cosignaturesOf(whole, policy, primitives);
    const time = quorumTime(policy, valid);
    if (fits && invalid.length === 0 && time !== null) {
      checkpoints++;
      const hour = Math.floor(time / HOUR_SECONDS);
      const before = hours.get(hour);
      if (before === undefined || before.size < size) hours.set(hour, { time, size });
    }
    return invalid.map((name) =>
      fault('cosignature_invalid', `The cosignature of the witness ${name} on ${subject} does not verify.`),
    );
  }

  return {
    /** Before the end. */
    fold: (): WitnessFold => ({ checkpoints, hours: [...hours] }),
    /** `fits`: the checkpoint is one of those recorded before it. */
    cosigned: ({ data }: EventOf<'CheckpointCosigned'>, fits: boolean): Promise<readonly Fault[]> =>
      verify(
        data.note,
        data.cosignatures.map(({ line }) => line),
        { of: `the checkpoint of ${data.size} leaves`, fits },
      ),
    /** At the end, of the checkpoints that the auditor kept. `fits`: the record continues it. */
    async kept(
      all: readonly KeptCheckpoint[],
      fits: (one: KeptCheckpoint) => boolean,
    ): Promise<readonly Fault[]> {
      const faults: Fault[] = [];
      for (const checkpoint of all)
        faults.push(
          ...(await verify(checkpoint.note, [], {
            of: `the checkpoint of ${checkpoint.source}`,
            fits: fits(checkpoint),
          })),
        );
      return faults;
    },
    /** Leaves of the largest tree that a quorum had cosigned before this time (Unix seconds); null: none. */
    before(time: number): number | null {
      const sizes = [...hours.values()].filter((one) => one.time < time).map(({ size }) => size);
      return sizes.length === 0 ? null : Math.max(...sizes);
    },
    /** Checkpoints that a quorum of the policy has cosigned; null: there is no policy. */
    summary: () => (policy === null ? null : { checkpoints, largest: largestOf([...hours.values()]) }),
  };
}

/** `time`: Unix seconds, by which a quorum had cosigned it, as its witnesses state. */
export type WitnessedSize = { readonly size: number; readonly time: number };

const largestOf = (all: readonly WitnessedSize[]): WitnessedSize | null =>
  all.reduce<WitnessedSize | null>(
    (best, one) => (best !== null && best.size >= one.size ? best : one),
    null,
  );

/** The earliest time by which the cosignatures are a quorum; null: they are none. */
function quorumTime(policy: WitnessPolicy, valid: readonly PolicyCosignature[]): number | null {
  const names = new Set<string>();
  for (const { name, time } of valid.toSorted((a, b) => a.time - b.time)) {
    names.add(name);
    if (judgeQuorum(policy, names).met) return time;
  }
  return null;
}
