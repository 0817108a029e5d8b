// Ends runs that are not executed: their payments are released, the reason is recorded, and the keys of what was sealed for
// them are deleted. Money that may have moved is never released.
import { sha256, toBase64url, toHex, utf8 } from '#src/domain/encoding.ts';
import { event } from '#src/domain/events.ts';
import type { Refused } from '#src/domain/refusal.ts';
import { cancelSchedule as cancel, catchUpEnd, skipRun } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import type { DefinedSchedule, Schedule, Ticket } from '#src/domain/schedule/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import { JOB, load, PAYMENT, SCHEDULE, tryAppend, type View } from '#src/usecases/process/stream.ts';
import { answerInTime } from '#src/usecases/response-deadline.ts';
import { notFound, type ScheduleDeps, timeOf } from './quote.ts';

export type EndDeps = Pick<
  ScheduleDeps,
  'log' | 'clock' | 'entropy' | 'logger' | 'ending' | 'vault' | 'calendar'
>;

/**
 * Records that a run is not executed. null: another process wrote to the schedule first; the same view: the run has a job,
 * or may still get one. `reason`: a code; that of the payment's end takes its place if the payment has ended already.
 * `startsElsewhere` false: no call but that of the caller can start its job.
 */
export async function endRun(
  deps: EndDeps,
  view: View<DefinedSchedule>,
  ticket: Ticket,
  reason: string,
  startsElsewhere = true,
): Promise<View<DefinedSchedule> | null> {
  const { jobId, paymentStream, status } = ticket;
  const now = deps.clock.now();
  const ended = paymentStream === null ? reason : await releasePayment(deps, paymentStream, jobId, reason);
  if (status === 'started') {
    // A payment that has ended starts no job. Otherwise a process that is late may start it, for as long as one may.
    const isOpen = startsElsewhere && (paymentStream === null || ended === UNSERVED);
    if (isOpen && now <= catchUpEnd(view.state.defined, ticket) + RUN_TIMES.endGraceMs) return view;
    // Read after the time, and the payment's end: a start that it does not show is not sent any more.
    if ((await load(deps, JOB, jobId)).state.status !== 'absent') return view;
  }
  const skipped = [skipRun(view.state, ticket, ended, timeOf(deps))];
  const after = definedView(await tryAppend(deps, SCHEDULE, view, skipped));
  if (after === null) return null;
  await forgetRun(deps, after, ticket);
  return after;
}

/** The only reason of a run that may have been charged. */
const UNSERVED = 'unserved';

/** Returns the reason that is recorded: the payment's own, if it ended before. */
export async function releasePayment(
  deps: Omit<EndDeps, 'vault' | 'calendar'>,
  stream: string,
  jobId: string,
  reason: string,
): Promise<string> {
  for (;;) {
    const view = await load(deps, PAYMENT, stream);
    const { state } = view;
    if (state.status === 'absent' || state.reserved.jobId !== jobId) return reason;
    switch (state.status) {
      case 'deferred': {
        const facts = { jobId, reason, lostKeyTo: null, releasedAt: isoNow(deps) };
        const releasing = tryAppend(deps, PAYMENT, view, [event('PaymentReleased', facts)]);
        if ((await releasing) !== null) return reason;
        break;
      }
      case 'rejected':
      case 'released':
        return state.reason;
      default:
        // It was settled, or may have been: it is the operator's to return.
        return UNSERVED;
    }
  }
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
  for (const { status: of, jobId } of tickets) {
    if (of === 'funded') return [];
    if ((await load({ log }, JOB, jobId)).state.status !== 'completed') return [];
  }
  return [defined.scheduleId];
}

export const definedView = (view: View<Schedule> | null): View<DefinedSchedule> | null =>
  view === null || view.state.status === 'absent' ? null : { ...view, state: view.state };

// ── the token that cancels ──────────────────────────────────────────────────────────────────────────────

export const tokenOf = ({ keyedHash }: Pick<ScheduleDeps, 'keyedHash'>, scheduleId: string): string =>
  toBase64url(keyedHash.mac('cancel', scheduleId));

/** Of a token; what a schedule's definition has. */
export const hashOf = (token: string): string => toHex(sha256(utf8(token)));

/** A run in progress ends; no further one starts. Calling it again completes what a crash left undone. */
export const cancelSchedule = (
  deps: EndDeps,
  scheduleId: string,
  token: string,
): Promise<DefinedSchedule | Refused> =>
  answerInTime(deps, 'repeat the cancellation.', async (deadline) => {
    for (;;) {
      let view = definedView(await load(deps, SCHEDULE, scheduleId));
      if (view === null || hashOf(token) !== view.state.defined.cancelHash) return notFound();
      const appending = tryAppend(deps, SCHEDULE, view, cancel(view.state, isoNow(deps)));
      view = definedView(await deadline.forAppend(appending));
      for (const ticket of view?.state.tickets ?? [])
        if (ticket.status === 'funded') view = view && (await endRun(deps, view, ticket, 'cancelled'));
      if (view === null) continue;
      await forgetRequest(deps, view);
      return view.state;
    }
  });
