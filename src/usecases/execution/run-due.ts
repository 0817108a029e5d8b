// Whether a run of a schedule is still to be executed, as its schedule's stream says: read after the reservation and before
// the settle call. What cancels a run is on another stream than its payment, so the order of the log decides.
import type { ScheduledRun } from '#src/domain/event-fields.ts';
import { ALLOWED, type Allowed, type Refused, refused } from '#src/domain/refusal.ts';
import { type JournalDeps, load, PAYMENT, SCHEDULE } from '#src/usecases/process/stream.ts';
import type { RunInput } from './execution-call.ts';
import { releasePayment } from './release-payment.ts';

/** `reason`: a code. */
export const runOver = (reason: string) =>
  refused('schedule_ended', 'This run of the schedule is over.', { details: { reason } });

/** `nowMs`: when its job starts. */
export const startedRun = ({ schedule }: RunInput, nowMs: number): ScheduledRun => ({
  ...schedule,
  lateByMs: Math.max(0, nowMs - Date.parse(schedule.dueAt)),
});

/**
 * Refuses a run that is skipped, or whose schedule was cancelled before its payment was reserved. Each call comes here before
 * it settles, so that nothing was settled for a payment that was reserved after the cancellation: it is released.
 */
export async function demandDue(
  deps: JournalDeps,
  run: RunInput | undefined,
  paymentStream: string | null,
): Promise<Allowed | Refused<'schedule_ended'>> {
  if (run === undefined) return ALLOWED;
  const { jobId, schedule } = run;
  const { state, events } = await load(deps, SCHEDULE, schedule.id);
  const ticket = state.status === 'absent' ? undefined : state.tickets.find((one) => one.jobId === jobId);
  if (ticket?.status !== 'started') return runOver('missed');
  const cancelled = events.find(({ type }) => type === 'ScheduleCancelled');
  if (cancelled === undefined) return ALLOWED;
  if (paymentStream === null) return runOver('cancelled');
  const payment = await load(deps, PAYMENT, paymentStream);
  const reserved = payment.events.findLast(({ type }) => type === 'PaymentReserved');
  if (reserved !== undefined && reserved.position < cancelled.position) return ALLOWED;
  await releasePayment(deps, paymentStream, 'reserved', { jobId, reason: 'cancelled', lostKeyTo: null });
  return runOver('cancelled');
}
