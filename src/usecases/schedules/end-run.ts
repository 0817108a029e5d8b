// Ends runs that are not executed: their payments are released, the reason is recorded, and the keys of what was sealed for
// them are deleted. Money that may have moved is never released.
import { sha256, toBase64url, toHex, utf8 } from '#src/domain/encoding.ts';
import { isUsedBefore, type Payment } from '#src/domain/payment/state.ts';
import type { Refused } from '#src/domain/refusal.ts';
import { cancelSchedule as cancel, catchUpEnd, skipRun } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import type { DefinedSchedule, Schedule, Ticket } from '#src/domain/schedule/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import { releasePayment } from '#src/usecases/execution/release-payment.ts';
import { JOB, load, SCHEDULE, tryAppend, type View } from '#src/usecases/process/stream.ts';
import { answerInTime } from '#src/usecases/response-deadline.ts';
import { type ScheduleDeps, scheduleNotFound, timeOf } from './quote.ts';
import { countSkipped } from './ticket-worth.ts';

export type EndDeps = Pick<
  ScheduleDeps,
  'log' | 'clock' | 'entropy' | 'logger' | 'ending' | 'vault' | 'calendar' | 'uncharged'
>;

/**
 * Records that a run is not executed. null: another process wrote to the schedule first; the same view: the run has a job,
 * or may still get one. `reason`: a code; that of the payment's end takes its place if the payment has ended already.
 * `isAlone`: no other call can start the run's job.
 */
export async function endRun(
  deps: EndDeps,
  view: View<DefinedSchedule>,
  ticket: Ticket,
  reason: string,
  isAlone = false,
): Promise<View<DefinedSchedule> | null> {
  const { jobId, paymentStream, status } = ticket;
  const facts = { jobId, reason, lostKeyTo: null };
  const payment = paymentStream === null ? null : await releasePayment(deps, paymentStream, 'pledged', facts);
  if (status === 'started' && !buysNothing(payment)) {
    if (!isAlone && deps.clock.now() <= catchUpEnd(view.state.defined, ticket) + RUN_TIMES.endGraceMs)
      return view;
    // Read after the time in which its job may start.
    if ((await load(deps, JOB, jobId)).state.status !== 'absent') return view;
  }
  const why = payment === null ? reason : endOf(payment, reason);
  const skipped = skipRun(view.state, ticket, why, timeOf(deps));
  const after = definedView(await tryAppend(deps, SCHEDULE, view, [skipped]));
  if (after !== null) {
    await countSkipped(deps, ticket, why);
    await forgetRun(deps, after, ticket);
  }
  return after;
}

/** The payment has ended, so that no process can start the run's job with it. */
const buysNothing = (payment: Payment | null): boolean =>
  payment?.status === 'released' ||
  payment?.status === 'rejected' ||
  (payment !== null && isUsedBefore(payment));

/** `unserved`: it was settled, or may have been, and is the operator's to return. */
function endOf(payment: Payment, reason: string): string {
  if (payment.status === 'released' || payment.status === 'rejected') return payment.reason;
  return payment.status === 'absent' ? reason : 'unserved';
}

/** Deletes the keys of a run that is over: its holder may then pay for another one. */
export async function forgetRun(deps: EndDeps, view: View<DefinedSchedule>, ticket: Ticket): Promise<void> {
  await deps.vault.remove([ticket.jobId, ...(await unneeded(deps, view))]);
}

/** Deletes the key of the request, if no run of the schedule can need it any more. */
export async function forgetRequest(deps: EndDeps, view: View<DefinedSchedule>): Promise<void> {
  await deps.vault.remove(await unneeded(deps, view));
}

/** The name of the request's key; empty: a run may need it. */
async function unneeded({ log }: EndDeps, { state }: View<DefinedSchedule>): Promise<readonly string[]> {
  const { status, next, tickets, defined } = state;
  if (status !== 'cancelled' && next !== null) return [];
  for (const { status: runStatus, jobId } of tickets) {
    if (runStatus === 'funded') return [];
    if ((await load({ log }, JOB, jobId)).state.status !== 'completed') return [];
  }
  return [defined.scheduleId];
}

export const definedView = (view: View<Schedule> | null): View<DefinedSchedule> | null =>
  view === null || view.state.status === 'absent' ? null : { ...view, state: view.state };

// ── the token of a schedule ─────────────────────────────────────────────────────────────────────────────

export const tokenOf = ({ keyedHash }: Pick<ScheduleDeps, 'keyedHash'>, scheduleId: string): string =>
  toBase64url(keyedHash.mac('cancel', scheduleId));

/** Of a token; what a schedule's definition has. */
export const hashOf = (token: string): string => toHex(sha256(utf8(token)));

/** `underWay`: runs that end although the schedule is cancelled, since their payment is reserved already, or they are free. */
export type CancelledSchedule = {
  readonly underWay: readonly { readonly run: number; readonly jobId: string }[];
};

/** No further run starts. Calling it again completes what a crash left undone. */
export const cancelSchedule = (
  deps: EndDeps,
  scheduleId: string,
  token: string,
): Promise<CancelledSchedule | Refused> =>
  answerInTime(deps, 'repeat the cancellation.', async (deadline) => {
    for (;;) {
      let view = definedView(await load(deps, SCHEDULE, scheduleId));
      if (view === null || hashOf(token) !== view.state.defined.cancelHash) return scheduleNotFound();
      const appending = tryAppend(deps, SCHEDULE, view, cancel(view.state, isoNow(deps)));
      view = definedView(await deadline.forAppend(appending));
      for (const ticket of view?.state.tickets ?? [])
        view = view && (await endRun(deps, view, ticket, 'cancelled'));
      if (view === null) continue;
      await forgetRequest(deps, view);
      return { underWay: await runsUnderWay(deps, view.state) };
    }
  });

async function runsUnderWay(
  deps: EndDeps,
  { tickets }: DefinedSchedule,
): Promise<CancelledSchedule['underWay']> {
  const jobs = await Promise.all(tickets.map(({ jobId }) => load(deps, JOB, jobId)));
  return tickets
    .filter((_, n) => jobs[n]?.state.status !== 'completed')
    .map(({ run, jobId }) => ({ run, jobId }));
}
