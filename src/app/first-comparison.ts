// What a shared database knows of a lost history is read before the first call is taken: an idempotency key whose answer was
// lost would be sent again.
import type { AbortSignalLike } from '#src/lib/time.ts';
import { succeedsWithin, unlessAborted } from '#src/lib/time.ts';

export type FirstComparison = {
  /** Opens the rows. Fails within about a second if they are not validated by then. */
  open(): Promise<unknown>;
  /** The database answers, and its rows are being compared: another try makes sense. */
  isComparing(): boolean;
  /** Compares the checkpoints of its generations with the log. */
  look(): Promise<unknown>;
};

/** New rows in place of those of a lost history take half a second, and longer on a busy machine. */
const COMPARED_MS = 20_000;

/**
 * Resolves when the comparison is made, or cannot be made now: the database does not answer, and calls do not wait for it.
 * Never rejects.
 */
export async function firstComparison(
  { open, isComparing, look }: FirstComparison,
  ending: AbortSignalLike,
): Promise<void> {
  const compare = async () => {
    for (let isOpen = false; !isOpen && !ending.aborted; ) {
      isOpen = await open().then(
        () => true,
        (cause: unknown) => {
          if (!isComparing()) throw cause;
          return false;
        },
      );
    }
    await look();
  };
  await unlessAborted(succeedsWithin(COMPARED_MS, compare()), ending);
}
