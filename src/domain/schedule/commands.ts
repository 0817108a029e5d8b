// What may happen to a schedule: facts in, events or a refusal out. Time, ids and the calendar are arguments.
import type { RunFunded, ScheduleDefined } from '../events/schedule.ts';
import { type EventFacts, type EventOf, event, type ScheduleEvent } from '../events.ts';
import { type Refused, refused } from '../refusal.ts';
import type { Calendar } from './calendar.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from './limits.ts';
import { apartFrom, dueAfter, dueNext } from './plan.ts';
import { type DefinedSchedule, type PlannedRun, type Ticket, UNFUNDED } from './state.ts';

type Time = { readonly now: number; readonly iso: (ms: number) => string; readonly calendar: Calendar };
type Plan = Pick<ScheduleDefined, 'schedule' | 'endsAt'>;

/** The run after `run`, due after `dueMs`; null: there is none within the schedule's bounds. */
function runAfter(plan: Plan, run: number, dueMs: number | null, time: Omit<Time, 'now'>): PlannedRun | null {
  if (dueMs === null || dueMs > Date.parse(plan.endsAt)) return null;
  return run > SCHEDULE_LIMITS.runsPerSchedule.max ? null : { run, dueAt: time.iso(dueMs) };
}

/** The first run of a schedule that begins now. */
export const firstRun = (plan: Plan, time: Time): PlannedRun | null =>
  runAfter(plan, 1, dueAfter(plan.schedule, time.now, time.calendar), time);

const following = (plan: Plan, { run, dueAt }: PlannedRun, time: Omit<Time, 'now'>): PlannedRun | null =>
  runAfter(plan, run + 1, dueNext(plan.schedule, Date.parse(dueAt), time.calendar), time);

/**
 * The first unfunded run that is still to come, its due time computed with the zone data of now, and the events that skip
 * those before it that have passed. null: there is none.
 */
export function nextToFund(
  schedule: DefinedSchedule,
  time: Time,
): { readonly run: PlannedRun; readonly passed: readonly EventOf<'RunSkipped'>[] } | null {
  const { defined, next: planned, lastDueAt } = schedule;
  if (planned === null) return null;
  const { run } = planned;
  const after = lastDueAt === null ? Date.parse(defined.definedAt) : apartFrom(Date.parse(lastDueAt));
  const due = runAfter(defined, run, dueAfter(defined.schedule, after, time.calendar), time);
  if (due === null || Date.parse(due.dueAt) > time.now) return due && { run: due, passed: [] };
  const later = dueAfter(defined.schedule, Math.max(after, time.now), time.calendar);
  const next = runAfter(defined, run + 1, later, time);
  if (next === null) return null;
  const facts = { ...due, plannedJobId: null, reason: UNFUNDED, next };
  return { run: next, passed: [skipped(schedule, facts, time)] };
}

/** The run itself if it is still to come, else the next one that is; null: there is none. */
export const laterRun = (plan: Plan, planned: PlannedRun, time: Time): PlannedRun | null =>
  Date.parse(planned.dueAt) > time.now
    ? planned
    : runAfter(plan, planned.run + 1, dueAfter(plan.schedule, time.now, time.calendar), time);

export type Funding = Pick<
  RunFunded,
  'jobId' | 'paymentStream' | 'validBefore' | 'holder' | 'client' | 'sealed'
>;

export function defineSchedule(
  facts: Omit<EventFacts<'ScheduleDefined'>, 'definedAt' | 'next'>,
  first: PlannedRun,
  funding: Funding,
  time: Time,
): readonly [EventOf<'ScheduleDefined'>, EventOf<'RunFunded'>] {
  const definedAt = time.iso(time.now);
  return [
    event('ScheduleDefined', { ...facts, next: first, definedAt }),
    funded(facts, first, funding, time),
  ];
}

function funded(
  plan: Plan & Pick<ScheduleDefined, 'scheduleId'>,
  planned: PlannedRun,
  funding: Funding,
  time: Time,
): EventOf<'RunFunded'> {
  const { scheduleId } = plan;
  const next = following(plan, planned, time);
  return event('RunFunded', { scheduleId, ...planned, ...funding, next, fundedAt: time.iso(time.now) });
}

/** `run`: of `nextToFund`. */
export function fundRun(
  schedule: DefinedSchedule,
  run: PlannedRun,
  funding: Funding,
  time: Time,
): EventOf<'RunFunded'> {
  return funded(schedule.defined, run, funding, time);
}

/** Why no further run can be paid for. */
export const over = (why: 'cancelled' | 'complete'): Refused<'schedule_ended'> =>
  refused(
    'schedule_ended',
    why === 'cancelled' ? 'The schedule is cancelled.' : 'The schedule has no further run to pay for.',
  );

function skipped(
  { defined }: DefinedSchedule,
  facts: PlannedRun &
    Pick<EventFacts<'RunSkipped'>, 'plannedJobId' | 'reason' | 'next'> & {
      readonly movedTo?: PlannedRun;
    },
  { now, iso }: Pick<Time, 'now' | 'iso'>,
): EventOf<'RunSkipped'> {
  const { scheduleId } = defined;
  return event('RunSkipped', { scheduleId, movedTo: null, ...facts, skippedAt: iso(now) });
}

/** Skips the first unfunded run if its time has come; pauses the schedule if it is one too many. No events: it has not. */
export function passUnfunded(schedule: DefinedSchedule, time: Time): readonly ScheduleEvent[] {
  const { next: planned, defined, unfundedInARow, status } = schedule;
  if (planned === null || status !== 'active' || Date.parse(planned.dueAt) > time.now) return [];
  const next = following(defined, planned, time);
  const skip = skipped(schedule, { ...planned, plannedJobId: null, reason: UNFUNDED, next }, time);
  if (unfundedInARow + 1 < SCHEDULE_LIMITS.unfundedInARow.max || next === null) return [skip];
  const { scheduleId } = defined;
  return [skip, event('SchedulePaused', { scheduleId, pausedAt: time.iso(time.now) })];
}

/** Ends a run without its execution. `reason`: a code. */
export function skipRun(
  schedule: DefinedSchedule,
  ticket: Ticket,
  reason: string,
  time: Time,
): EventOf<'RunSkipped'> {
  const { run, dueAt, jobId } = ticket;
  return skipped(schedule, { run, dueAt, plannedJobId: jobId, reason, next: schedule.next }, time);
}

/** Skips a run that was missed, and uses its payment for the first unfunded run, if it lives that long. null: it does not. */
export function moveRun(schedule: DefinedSchedule, ticket: Ticket, time: Time): EventOf<'RunSkipped'> | null {
  const { next: movedTo, defined, status } = schedule;
  const { run, dueAt, jobId, validBefore } = ticket;
  if (movedTo === null || status !== 'active' || ticket.status !== 'funded') return null;
  const dueMs = Date.parse(movedTo.dueAt);
  const lives = validBefore === null || validBefore >= dueMs / 1000 + RUN_TIMES.authorizationLeastSeconds;
  if (dueMs <= time.now || !lives) return null;
  const next = following(defined, movedTo, time);
  return skipped(schedule, { run, dueAt, plannedJobId: jobId, reason: 'missed', movedTo, next }, time);
}

export function startRun(
  { defined, status }: DefinedSchedule,
  ticket: Ticket,
  owner: string,
  startedAt: string,
): EventOf<'RunStarted'> | null {
  if (status === 'cancelled' || ticket.status !== 'funded') return null;
  const { run, jobId } = ticket;
  return event('RunStarted', { scheduleId: defined.scheduleId, run, jobId, owner, startedAt });
}

/** No events: it is cancelled already. */
export function cancelSchedule(
  { defined, status }: DefinedSchedule,
  cancelledAt: string,
): readonly EventOf<'ScheduleCancelled'>[] {
  if (status === 'cancelled') return [];
  return [event('ScheduleCancelled', { scheduleId: defined.scheduleId, cancelledAt })];
}

/** From when on a run may not start any more: Unix ms. */
export const catchUpEnd = (
  { catchUpSeconds }: Pick<ScheduleDefined, 'catchUpSeconds'>,
  { dueAt }: Pick<PlannedRun, 'dueAt'>,
): number => Date.parse(dueAt) + catchUpSeconds * 1000;

/** The next runs, funded or not, in their order; at most `max` of those without a payment. */
export function upcomingRuns(
  schedule: DefinedSchedule,
  time: Time,
  max: number,
): readonly (PlannedRun & { readonly state: 'funded' | 'unfunded' })[] {
  const funded = schedule.tickets
    .filter(({ status }) => status === 'funded')
    .map(({ run, dueAt }) => ({ run, dueAt, state: 'funded' as const }));
  const unfunded: (PlannedRun & { readonly state: 'unfunded' })[] = [];
  let planned = nextToFund(schedule, time)?.run ?? null;
  for (; planned !== null && unfunded.length < max; planned = following(schedule.defined, planned, time))
    unfunded.push({ ...planned, state: 'unfunded' });
  return [...funded, ...unfunded];
}
