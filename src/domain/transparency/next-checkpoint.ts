// Whether the tree's head may be signed: only where all that was signed before is a part of it, and proven to be.
import { type Hash, sameHash } from './merkle.ts';

/** A checkpoint that stands in the event log. */
export type StoredCheckpoint = {
  readonly size: number;
  readonly root: Hash;
  /** Of its event: compares as text in the log's global order. */
  readonly position: string;
};

export type CheckpointFacts = {
  /** The last one in the event log; null: nobody can read what stands there. */
  readonly last: StoredCheckpoint | null;
  /** Its note is signed by a key of this relay, under the log's origin. */
  readonly signed: boolean;
  /** The newest one that this process has given out or seen; null: none. */
  readonly known: Pick<StoredCheckpoint, 'size' | 'root'> | null;
  /** The tree as it stands. */
  readonly rows: {
    readonly size: number;
    /** Of the last event that the rows tell; null: of none. */
    readonly position: string | null;
    /** Proven: the last checkpoint's tree is a prefix of it (RFC 6962 §2.1.2), or the whole of it. */
    readonly extendsLast: boolean;
  };
};

/** Why nothing is signed: each is a finding, and the operator's to explain. */
export type CheckpointProblem =
  | 'checkpoint_unreadable'
  | 'checkpoint_forgotten'
  | 'checkpoint_not_signed'
  | 'history_cut'
  | 'history_rewritten';

/** `rest`: all leaves are covered. `wait`: the rows are behind the last checkpoint. */
export type NextCheckpoint =
  | { readonly next: 'sign' | 'rest' | 'wait' }
  | { readonly next: 'refuse'; readonly why: CheckpointProblem };

export function nextCheckpoint({ last, signed, known, rows }: CheckpointFacts): NextCheckpoint {
  if (last === null) return refuse('checkpoint_unreadable');
  if (known !== null && contradicts(last, known)) return refuse('checkpoint_forgotten');
  if (!signed) return refuse('checkpoint_not_signed');
  if (rows.size < last.size) {
    // Its leaves all stand before the checkpoint in the log: rows that tell the one tell the others.
    const told = rows.position !== null && rows.position >= last.position;
    return told ? refuse('history_cut') : { next: 'wait' };
  }
  if (!rows.extendsLast) return refuse('history_rewritten');
  return { next: rows.size === last.size ? 'rest' : 'sign' };
}

/** What was given out once stays: the log only goes on from there. */
function contradicts(last: StoredCheckpoint, known: Pick<StoredCheckpoint, 'size' | 'root'>): boolean {
  return last.size < known.size || (last.size === known.size && !sameHash(last.root, known.root));
}

const refuse = (why: CheckpointProblem): NextCheckpoint => ({ next: 'refuse', why });
