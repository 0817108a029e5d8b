// A schedule: what its stream says of it. What may happen next is decided in commands.ts.
import type { RunFunded, RunSkipped, ScheduleDefined } from '../events/schedule.ts';
import type { ScheduleEvent } from '../events.ts';

/** A run that is due at an instant. `dueAt`: RFC 3339. */
export type PlannedRun = { readonly run: number; readonly dueAt: string };

/** A run that is paid for (or free) and not over, as far as the schedule's stream shows: its job may have ended. */
export type Ticket = PlannedRun &
  Pick<RunFunded, 'jobId' | 'paymentStream' | 'validBefore' | 'sealed'> & {
    readonly status: 'funded' | 'started';
  };

export type Schedule =
  | { readonly status: 'absent' }
  | {
      readonly status: 'active' | 'paused' | 'cancelled';
      readonly defined: ScheduleDefined;
      /** Keyed hash of who bought run 1; null: no one has. */
      readonly holder: string | null;
      /** In the order of their runs. */
      readonly tickets: readonly Ticket[];
      /** Runs without a payment, the last ones in a row. */
      readonly unfundedInARow: number;
      /** Of the last run before `next`; null: there is none. RFC 3339. */
      readonly lastDueAt: string | null;
      /** The first run without a payment; null: there is none any more. */
      readonly next: PlannedRun | null;
    };
export type DefinedSchedule = Exclude<Schedule, { status: 'absent' }>;

export const absentSchedule: Schedule = { status: 'absent' };

export const UNFUNDED = 'not_funded';

/** Folds one event; an event that cannot follow the state leaves it as it was (the audit reports it). */
export function evolveSchedule(schedule: Schedule, event: ScheduleEvent): Schedule {
  if (schedule.status === 'absent') {
    if (event.type !== 'ScheduleDefined') return schedule;
    const { next } = event.data;
    const started = { tickets: [], unfundedInARow: 0, lastDueAt: null, holder: null };
    return { status: 'active', defined: event.data, ...started, next };
  }
  switch (event.type) {
    case 'ScheduleDefined':
      return schedule;
    case 'RunFunded':
      return fund(schedule, event.data);
    case 'RunStarted': {
      const { run, jobId } = event.data;
      const isIts = (ticket: Ticket) =>
        ticket.run === run && ticket.jobId === jobId && ticket.status === 'funded';
      if (schedule.status === 'cancelled' || !schedule.tickets.some(isIts)) return schedule;
      const tickets = schedule.tickets.map((ticket) =>
        isIts(ticket) ? { ...ticket, status: 'started' as const } : ticket,
      );
      return { ...schedule, tickets };
    }
    case 'RunSkipped':
      return skip(schedule, event.data);
    case 'SchedulePaused':
      return schedule.status === 'active' ? { ...schedule, status: 'paused' } : schedule;
    case 'ScheduleCancelled':
      return schedule.status === 'cancelled' ? schedule : { ...schedule, status: 'cancelled', next: null };
    default:
      return event satisfies never;
  }
}

function fund(schedule: DefinedSchedule, funded: RunFunded): Schedule {
  if (schedule.status === 'cancelled' || schedule.next?.run !== funded.run) return schedule;
  const { run, dueAt, jobId, paymentStream, validBefore, sealed, next } = funded;
  const ticket: Ticket = { run, dueAt, jobId, paymentStream, validBefore, sealed, status: 'funded' };
  return {
    ...schedule,
    status: 'active',
    holder: schedule.holder ?? funded.holder,
    tickets: [...schedule.tickets, ticket],
    unfundedInARow: 0,
    lastDueAt: dueAt,
    next,
  };
}

function skip(schedule: DefinedSchedule, skipped: RunSkipped): Schedule {
  const { run, plannedJobId, movedTo, next } = skipped;
  if (plannedJobId === null) {
    if (schedule.next?.run !== run) return schedule;
    return { ...schedule, next, lastDueAt: skipped.dueAt, unfundedInARow: schedule.unfundedInARow + 1 };
  }
  const ticket = schedule.tickets.find((one) => one.run === run && one.jobId === plannedJobId);
  if (ticket === undefined) return schedule;
  const others = schedule.tickets.filter((one) => one !== ticket);
  if (movedTo === null) return { ...schedule, tickets: others };
  // Only what is not started moves, to the first run without a payment.
  if (ticket.status !== 'funded' || schedule.next?.run !== movedTo.run) return schedule;
  return { ...schedule, tickets: [...others, { ...ticket, ...movedTo }], lastDueAt: movedTo.dueAt, next };
}
