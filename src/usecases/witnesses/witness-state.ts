// What a process knows of one witness: facts in, state out. `at` and `now`: the monotonic clock.
import type { WitnessFailure } from '#src/ports/witness.ts';

/**
 * Why a witness has not cosigned the last checkpoint that it was given. `ahead`: it publishes a larger checkpoint that this log
 * has signed and that the event log lacks. `states_larger_size_without_proof`: it states that it has cosigned a larger one, and
 * publishes none that this log has signed. `forked`: it refuses the proof, and publishes a checkpoint that this log has signed and that
 * is not in the history of the event log.
 * `contradicts_itself`: its answers do not fit each other. `no_cosignature`, `invalid_cosignature`, `unverifiable`: its answer has no line by its
 * key, one that does not verify, or one that this runtime cannot verify. `wrong_time`: it cosigned at a time more than five
 * minutes from ours. `http_…`: the status.
 */
export type WitnessRefusal =
  | WitnessFailure
  | 'ahead'
  | 'forked'
  | 'states_larger_size_without_proof'
  | 'contradicts_itself'
  | 'no_cosignature'
  | 'invalid_cosignature'
  | 'unverifiable'
  | 'wrong_time'
  | `http_${number}`;

export type WitnessState = {
  /** The size that it has cosigned last, as it states; null: not known. */
  readonly size: number | null;
  /** The size that it has stated since its last cosignature; null: none. */
  readonly stated: number | null;
  /** Leaves of the checkpoint of another history that it has published since its last cosignature; null: none. */
  readonly forked: number | null;
  /** null: its last answer was a cosignature, or it has not answered yet. */
  readonly refusal: WitnessRefusal | null;
  /** Refusals in a row. */
  readonly failures: number;
  /** It is not asked before. */
  readonly askAt: number;
  /** Of its last valid cosignature that this process has seen, Unix seconds; null: none. */
  readonly cosignedAt: number | null;
  /** The checkpoint key of the log (note key id, hex) that it has accepted alone; null: none is known. */
  readonly accepts: string | null;
  /** It refused the newest key alone: it is asked again with the others only, until then. */
  readonly aloneAt: number;
};

export const UNKNOWN_WITNESS: WitnessState = {
  size: null,
  stated: null,
  forked: null,
  refusal: null,
  failures: 0,
  askAt: Number.NEGATIVE_INFINITY,
  cosignedAt: null,
  accepts: null,
  aloneAt: Number.NEGATIVE_INFINITY,
};

export type WitnessFact =
  /** `accepts`: the key that was the only one that could convince it; null: there were several. */
  | {
      readonly kind: 'cosigned';
      readonly size: number;
      readonly time: number;
      readonly accepts: string | null;
    }
  | { readonly kind: 'size_learnt'; readonly size: number }
  | {
      readonly kind: 'refused';
      readonly why: WitnessRefusal;
      readonly at: number;
      readonly intervalMs: number;
    }
  /** The larger size is that of a checkpoint which it publishes, and which this log has signed. */
  | { readonly kind: 'proved' }
  /** A checkpoint of so many leaves that it publishes, that this log has signed, and that is of another history. */
  | { readonly kind: 'forked'; readonly size: number }
  /** The larger size is one that another process has signed meanwhile. */
  | { readonly kind: 'overtaken' }
  /** The newest key of the log alone was not accepted, with status 403. */
  | { readonly kind: 'alone_refused'; readonly at: number };

/** However long a witness fails, it is asked this often. */
export const LONGEST_BACKOFF_MS = 600_000;
/** A witness that does not know the log's newest key is given it alone again after this time. */
const ALONE_AGAIN_MS = 600_000;

export function evolveWitness(state: WitnessState, fact: WitnessFact): WitnessState {
  switch (fact.kind) {
    case 'cosigned': {
      const { size, time, accepts } = fact;
      const known = { size, stated: null, forked: null, cosignedAt: time, accepts: accepts ?? state.accepts };
      return { ...state, ...known, refusal: null, failures: 0, askAt: Number.NEGATIVE_INFINITY };
    }
    case 'size_learnt':
      return { ...state, size: fact.size, stated: fact.size };
    case 'refused': {
      const { why, at, intervalMs } = fact;
      const backoff = Math.min(intervalMs * 2 ** Math.min(state.failures, 20), LONGEST_BACKOFF_MS);
      // The first time it is asked again with the next round.
      const askAt = state.failures === 0 ? Number.NEGATIVE_INFINITY : at + backoff;
      return { ...state, refusal: why, failures: state.failures + 1, askAt };
    }
    case 'proved':
      return { ...state, refusal: 'ahead' };
    case 'forked':
      return { ...state, refusal: 'forked', forked: fact.size };
    case 'overtaken':
      return { ...state, stated: null, refusal: null, failures: 0, askAt: Number.NEGATIVE_INFINITY };
    case 'alone_refused':
      return { ...state, aloneAt: fact.at + ALONE_AGAIN_MS };
    default:
      return fact satisfies never;
  }
}
