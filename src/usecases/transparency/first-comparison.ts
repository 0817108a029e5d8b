// What a shared database knows of a lost history is read before the first call is taken: an idempotency key whose answer was
// lost would be sent again.
import type { AbortSignalLike } from '#src/lib/time.ts';
import { succeedsWithin, unlessAborted } from '#src/lib/time.ts';

export type FirstComparison = {
  /** Notes of its checkpoints, as soon as it has a generation of this log's history; null: not within about a second. */
  compared(): Promise<readonly string[] | null>;
  /** The database answers: another try makes sense. */
  isOpening(): boolean;
  /** Compares checkpoints with the log. */
  compareKept(notes: readonly string[]): Promise<void>;
};

/** New rows in place of those of a lost history take half a second, and longer on a busy machine. */
const COMPARED_MS = 20_000;

/**
 * Resolves when the comparison is made, or cannot be made now: the database does not answer, and calls do not wait for it.
 * Never rejects.
 */
export async function firstComparison(
  { compared, isOpening, compareKept }: FirstComparison,
  ending: AbortSignalLike,
): Promise<void> {
  const compare = async () => {
    while (!ending.aborted) {
      const notes = await compared();
      if (notes !== null) return compareKept(notes);
      if (!isOpening()) return;
    }
  };
  await unlessAborted(succeedsWithin(COMPARED_MS, compare()), ending);
}
