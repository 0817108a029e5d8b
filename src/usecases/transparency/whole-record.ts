// No new call and no decision is taken while the event log lacks events that this relay has acknowledged: an answered
// idempotency key would be sent again, and a second history would begin.
import { Fault } from '#src/domain/refusal.ts';
import { type AbortSignalLike, succeedsByClock, unlessAborted } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';

export type RecordDeps = {
  /** false: a checkpoint that was published is missing from the event log (`checkpoint_forgotten`). Never throws. */
  readonly recordIsWhole: () => Promise<boolean>;
};

/** Throws `Fault` `event_log_unavailable`. `outcome`: what was not done. */
export async function demandWholeRecord({ recordIsWhole }: RecordDeps, outcome: string): Promise<void> {
  if (await recordIsWhole()) return;
  const why = 'The event log lacks events that this relay has acknowledged';
  const message = `${why}: ${outcome}, until its operator has put them back or accepted the loss.`;
  throw new Fault('event_log_unavailable', message, { retryAfterSeconds: 60 });
}

// ── what a shared database knows of a lost history is read before the first call ────────────────────

export type FirstComparison = {
  readonly clock: Pick<Clock, 'sleep'>;
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
  { clock, compared, isOpening, compareKept }: FirstComparison,
  ending: AbortSignalLike,
): Promise<void> {
  const compare = async () => {
    while (!ending.aborted) {
      const notes = await compared();
      if (notes !== null) return compareKept(notes);
      if (!isOpening()) return;
    }
  };
  await unlessAborted(succeedsByClock(clock, COMPARED_MS, compare()), ending);
}
