// Which event log a relay has used, as it is remembered outside of the log: a missing, empty or other log would know none of
// the idempotency keys and payments that were answered, and repeat their calls.
import { type Static, Type } from '@sinclair/typebox';
import { Commitment, Nullable } from '#src/domain/event-fields.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { KeyPurpose } from '../events/signing-keys.ts';

/** Up to the year 9999, so that an event can state it. */
const UnixSeconds = Type.Integer({ minimum: 0, maximum: 253_402_300_799 });

export const KnownLog = Type.Object({
  /** The id of its first event of signing keys, a random UUID; null: the log was given up, and the next has not begun. */
  id: Nullable(Type.String({ minLength: 1 })),
  /** How many logs were given up before it. */
  earlier: Type.Integer({ minimum: 0 }),
  /** Every key that was announced, as the key set publishes it: receipts of a log that was given up verify with them. */
  keys: Type.Array(
    Type.Object({
      keyId: Commitment,
      purpose: KeyPurpose,
      x: Commitment,
      notBefore: UnixSeconds,
      notAfter: Nullable(UnixSeconds),
      compromisedAt: Nullable(UnixSeconds),
    }),
  ),
});
export type KnownLog = Static<typeof KnownLog>;

export const isKnownLog = shapeCheck(KnownLog);

/** What a file shows about the log in use: its id (a `KnownLog`), or the name of its transparency log (a checkpoint). */
export type LogEvidence = {
  /** The file, for messages. */
  readonly place: string;
  readonly id: string | null;
  readonly origin: string | null;
};

/** The event log at hand. `id` null: no key was announced in it. `origin` null: it has no checkpoint. */
export type FoundLog = Pick<LogEvidence, 'id' | 'origin'>;

/** Why the log at hand is not the one in use, and the places that show it; null: nothing contradicts it. */
export function contradictionOf(
  found: FoundLog,
  evidence: readonly LogEvidence[],
): { readonly is: 'empty' | 'other'; readonly places: readonly string[] } | null {
  const placesOf = (contradicting: readonly LogEvidence[]) => contradicting.map(({ place }) => place);
  if (found.id === null) return evidence.length === 0 ? null : { is: 'empty', places: placesOf(evidence) };
  const known = evidence.filter(({ id }) => id !== null);
  const others =
    known.length > 0
      ? known.filter(({ id }) => id !== found.id)
      : evidence.filter(({ origin }) => found.origin !== null && origin !== null && origin !== found.origin);
  return others.length === 0 ? null : { is: 'other', places: placesOf(others) };
}

/**
 * What distinguishes the transparency log from those of the logs given up before it, whose checkpoints it does not continue;
 * null for the first log.
 */
export const successorName = ({ id, earlier }: Pick<KnownLog, 'id' | 'earlier'>): string | null =>
  id === null || earlier === 0 ? null : id.slice(0, 8);
