// Whether the tree head may be signed: only if the last checkpoint's tree is proven to be a prefix of it.
import { type Hash, sameHash } from './merkle.ts';

/** A checkpoint in the event log. */
export type StoredCheckpoint = {
  readonly size: number;
  readonly root: Hash;
  /** Of its event; compares as text in the log's global order. */
  readonly position: string;
};

export type CheckpointFacts = {
  /** The last one in the event log; null: it cannot be read. */
  readonly last: StoredCheckpoint | null;
  /** Its note is signed by a key of this relay, under the log's origin. */
  readonly signed: boolean;
  /** The newest one that this process has published or seen; null: none. */
  readonly known: Pick<StoredCheckpoint, 'size' | 'root'> | null;
  /** The current tree. */
  readonly rows: {
    readonly size: number;
    /** The projection position of the rows; null: no event. */
    readonly position: string | null;
    /** Proven: the last checkpoint's tree is a prefix of it or equal to it (RFC 6962 §2.1.2). */
    readonly extendsLast: boolean;
  };
};

/** Why nothing is signed. The operator has to investigate each. */
export type CheckpointProblem =
  | 'checkpoint_unreadable'
  | 'checkpoint_forgotten'
  | 'checkpoint_not_signed'
  | 'history_cut'
  | 'history_rewritten';

/** `rest`: all leaves are covered. `wait`: the rows lag behind the last checkpoint. */
export type NextCheckpoint =
  | { readonly next: 'sign' | 'rest' | 'wait' }
  | { readonly next: 'refuse'; readonly why: CheckpointProblem };

export function nextCheckpoint({ last, signed, known, rows }: CheckpointFacts): NextCheckpoint {
  if (last === null) return refuse('checkpoint_unreadable');
  if (known !== null && contradicts(last, known)) return refuse('checkpoint_forgotten');
  if (!signed) return refuse('checkpoint_not_signed');
  if (rows.size < last.size) {
    // All leaves precede the checkpoint in the event log: rows that contain the checkpoint contain all its leaves.
    const projected = rows.position !== null && rows.position >= last.position;
    return projected ? refuse('history_cut') : { next: 'wait' };
  }
  if (!rows.extendsLast) return refuse('history_rewritten');
  return { next: rows.size === last.size ? 'rest' : 'sign' };
}

/** A published checkpoint must not be lost or replaced: a later one extends it. */
function contradicts(last: StoredCheckpoint, known: Pick<StoredCheckpoint, 'size' | 'root'>): boolean {
  return last.size < known.size || (last.size === known.size && !sameHash(last.root, known.root));
}

const refuse = (why: CheckpointProblem): NextCheckpoint => ({ next: 'refuse', why });
