// What a process knows of the checkpoints of the transparency log: facts in, state out. `at` and `now`: the monotonic clock.
import type { CheckpointStatus } from '#src/domain/monitoring/trust.ts';
import {
  type CheckpointProblem,
  contradicts,
  type NextCheckpoint,
  type TreeHead,
} from '#src/domain/transparency/checkpoint.ts';

/**
 * A checkpoint with the signed note that it was parsed from. `place`: where it is kept outside of the event log, a noun
 * with its article; null: nowhere. `signedAt`: RFC 3339, as its event states; null: not known.
 */
export type StoredNote = TreeHead & {
  readonly note: string;
  readonly place: string | null;
  readonly signedAt: string | null;
};

/** A witness, as the policy names it, and the leaves of a checkpoint that it has cosigned. */
export type WitnessClaim = { readonly witness: string; readonly size: number };

export type WitnessClaims = {
  /** Larger sizes than the newest checkpoint's, without a proof, by witnesses that are a quorum; empty: there are none. */
  readonly larger: readonly WitnessClaim[];
  /** Checkpoints that this log has signed, of another history than the event log has. */
  readonly forked: readonly WitnessClaim[];
};

export type CheckpointState = {
  /** null: there is none. `origin`: the name in its first checkpoint; null: that cannot be read. */
  readonly log: { readonly origin: string | null } | null;
  /** The newest that was published, whatever the event log contains now. */
  readonly newest: StoredNote | null;
  /** The last checkpoint of the event log, as last read, contradicts one that was published before. */
  readonly forgotten: boolean;
  /** The last witness that published a checkpoint which this log has signed and the event log may lack; null: none. */
  readonly proven: WitnessClaim | null;
  readonly claims: WitnessClaims;
  /** Of the last comparison of the last checkpoint with the tree; null before the first. */
  readonly verdict: NextCheckpoint | null;
  /** Since when leaves wait for the checkpoint after this revision: leaves have no time of their own. */
  readonly waiting: { readonly revision: bigint; readonly since: number } | null;
  /** Rows at this projection position need no further comparison. */
  readonly settled: string | null;
};

export const NO_CHECKPOINTS: CheckpointState = {
  log: null,
  newest: null,
  forgotten: false,
  proven: null,
  claims: { larger: [], forked: [] },
  verdict: null,
  waiting: null,
  settled: null,
};

/** `revision`: of the last checkpoint in the event log. `position`: of the rows that it was compared with. */
export type CheckpointFact =
  | { readonly kind: 'log_found'; readonly origin: string | null }
  | { readonly kind: 'checkpoint_found'; readonly checkpoint: StoredNote }
  /** The event log was read. `last`: its last checkpoint; `known`: the newest that was published before that. */
  | { readonly kind: 'log_read'; readonly last: StoredNote; readonly known: StoredNote | null }
  /** A checkpoint that a witness publishes, signed by this log; it is found as any other. */
  | { readonly kind: 'witness_published'; readonly by: WitnessClaim }
  | { readonly kind: 'witness_claims'; readonly claims: WitnessClaims }
  | {
      readonly kind: 'compared';
      readonly verdict: NextCheckpoint;
      readonly revision: bigint;
      readonly position: string | null;
      readonly at: number;
    }
  | { readonly kind: 'signed'; readonly position: string | null };

export function evolveCheckpoints(state: CheckpointState, fact: CheckpointFact): CheckpointState {
  switch (fact.kind) {
    case 'log_found':
      return { ...state, log: { origin: fact.origin } };
    case 'checkpoint_found':
      return isNewest(fact.checkpoint, state.newest)
        ? { ...state, newest: dated(fact.checkpoint, state.newest) }
        : state;
    case 'log_read': {
      // A read that began before a checkpoint was known does not clear what a later one has found missing.
      const known = state.forgotten ? state.newest : fact.known;
      return { ...state, forgotten: known !== null && contradicts(fact.last, known) };
    }
    case 'witness_published':
      return { ...state, proven: fact.by };
    case 'witness_claims':
      return { ...state, claims: fact.claims };
    case 'compared': {
      const { verdict, revision, position, at } = fact;
      if (verdict.kind === 'rest' || verdict.kind === 'wait')
        return { ...state, verdict, waiting: null, settled: position };
      const since = state.waiting?.revision === revision ? state.waiting.since : at;
      return { ...state, verdict, waiting: { revision, since } };
    }
    case 'signed':
      return { ...state, waiting: null, settled: fact.position };
    default:
      return fact satisfies never;
  }
}

/** One kept elsewhere also replaces one of its size: if their roots differ, the event log was replaced. */
const isNewest = ({ size, place }: StoredNote, newest: StoredNote | null): boolean =>
  newest === null || size > newest.size || (place !== null && size === newest.size);

/** A copy kept elsewhere has no time. */
const dated = (found: StoredNote, before: StoredNote | null): StoredNote =>
  found.note === before?.note ? { ...found, signedAt: found.signedAt ?? before.signedAt } : found;

/** If leaves wait this long, the projecting process does not sign, and any other does. */
const TAKE_OVER_MS = 10_000;

export type RowsNow = {
  /** Of the last event; null: none, or not known yet. */
  readonly position: string | null;
  /** Only a process that projects signs, unless leaves wait for long; null: the rows are unavailable. */
  readonly role: 'projects' | 'follows' | null;
};

/** Whether to compare the last checkpoint with the tree, and then to sign the next one; null: neither. */
export function dueLook(
  { log, settled, waiting }: CheckpointState,
  { position, role }: RowsNow,
  now: number,
): 'sign' | 'compare' | null {
  if (log === null || role === null || position === settled) return null;
  const isOverdue = waiting !== null && now - waiting.since >= TAKE_OVER_MS;
  return role === 'projects' || isOverdue ? 'sign' : 'compare';
}

/** The claims of a quorum that are above the newest checkpoint: the event log lacks events. */
export const quorumAhead = ({ claims, newest }: CheckpointState): readonly WitnessClaim[] =>
  claims.larger.filter(({ size }) => size > (newest?.size ?? 0));

export function problemOf(state: CheckpointState): CheckpointProblem | null {
  const { verdict, forgotten, claims } = state;
  if (forgotten || claims.forked.length > 0 || quorumAhead(state).length > 0) return 'checkpoint_forgotten';
  return verdict?.kind === 'refuse' ? verdict.why : null;
}

export function checkpointStatus(state: CheckpointState, now: number): CheckpointStatus | null {
  const problem = problemOf(state);
  if (state.verdict === null && problem === null) return null;
  const ageMs = state.waiting === null ? 0 : Math.round(now - state.waiting.since);
  return { ageMs, problem };
}
