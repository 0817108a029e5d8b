// No new call and no decision is taken while the event log lacks events that this relay has acknowledged: an answered
// idempotency key would be sent again, and a second history would begin.
import { Fault } from '#src/domain/refusal.ts';

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
