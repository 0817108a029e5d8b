// What a run of a schedule costs and when it is due: the order as it is read, and what its payment has to live up to.
import { canonicalJson, type Json } from '#src/domain/canonical-json.ts';
import { toHex } from '#src/domain/encoding.ts';
import type { ScheduleDefined } from '#src/domain/events/schedule.ts';
import { fingerprintText, type WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { Calendar } from '#src/domain/schedule/calendar.ts';
import { catchUpEnd, firstRun, nextToFund, over } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { checkedSchedule, type ScheduleRequest } from '#src/domain/schedule/plan.ts';
import type { DefinedSchedule, PlannedRun } from '#src/domain/schedule/state.ts';
import { iso } from '#src/lib/iso.ts';
import { orLogFault } from '#src/ports/outage.ts';
import type { Vault } from '#src/ports/vault.ts';
import { type ReadRequest, readRequest } from '#src/usecases/decisions/judge-request.ts';
import type { ExecuteDeps } from '#src/usecases/execution/execute-webhook.ts';
import { load, SCHEDULE } from '#src/usecases/process/stream.ts';

export type ScheduleDeps = ExecuteDeps & {
  readonly vault: Vault;
  readonly calendar: Calendar;
  /** No run of a schedule is due later than this after its definition. */
  readonly horizonMs: number;
};

/** What one payment for a run has to live up to. */
export type Quote = {
  readonly run: PlannedRun;
  /** Until when the run may start: Unix ms. */
  readonly untilMs: number;
  /** How long an authorization that is signed now has to live. */
  readonly maxTimeoutSeconds: number;
};

export type Plan = {
  readonly read: ReadRequest;
  readonly webhook: WebhookRequest;
  readonly defined: Pick<ScheduleDefined, 'schedule' | 'catchUpSeconds' | 'endsAt' | 'fingerprint'>;
};

export const timeOf = ({ clock, calendar }: Pick<ScheduleDeps, 'clock' | 'calendar'>) => ({
  now: clock.now(),
  iso,
  calendar,
});

export const quoteOf = (
  nowMs: number,
  run: PlannedRun,
  plan: Pick<ScheduleDefined, 'catchUpSeconds'>,
): Quote => {
  const untilMs = catchUpEnd(plan, run);
  const lifeMs = untilMs - nowMs;
  return {
    run,
    untilMs,
    maxTimeoutSeconds: Math.ceil(lifeMs / 1000) + RUN_TIMES.authorizationMarginSeconds,
  };
};

// ── what a run costs ────────────────────────────────────────────────────────────────────────────────────

/** Of the first run of a schedule. Nothing is looked up. */
export function quoteSchedule(
  deps: ScheduleDeps,
  request: ScheduleRequest,
): Quote | Refused<'invalid_request' | 'invalid_schedule'> {
  const plan = readPlan(deps, request);
  if (isRefused(plan)) return plan;
  const first = firstRun(plan.defined, timeOf(deps));
  return first === null ? noRun() : quoteOf(deps.clock.now(), first, plan.defined);
}

/** Of the first run without a payment. */
export async function quoteRun(
  deps: ScheduleDeps,
  scheduleId: string,
): Promise<Quote | Refused<'schedule_not_found' | 'schedule_ended'>> {
  const { state } = await orLogFault(load(deps, SCHEDULE, scheduleId), 'repeat the request.');
  if (state.status === 'absent') return notFound();
  const next = nextOf(deps, state);
  return isRefused(next) ? next : quoteOf(deps.clock.now(), next.run, state.defined);
}

export function nextOf(deps: ScheduleDeps, schedule: DefinedSchedule) {
  if (schedule.status === 'cancelled') return over('cancelled');
  return nextToFund(schedule, timeOf(deps)) ?? over('complete');
}

export const notFound = () => refused('schedule_not_found', 'There is no such schedule.');

export const noRun = () =>
  refused('invalid_schedule', 'The schedule has no run that can be bought: see details.', {
    details: [{ path: '/schedule', message: 'Expected a run in the future, within the horizon' }],
  });

/** The request as it is ordered. */
export function readPlan(
  deps: ScheduleDeps,
  { webhook, schedule: given, catchUpSeconds = SCHEDULE_LIMITS.catchUpSeconds.default }: ScheduleRequest,
): Plan | Refused<'invalid_request' | 'invalid_schedule'> {
  const read = readRequest(webhook, '/webhook');
  if (isRefused(read)) return read;
  const schedule = checkedSchedule(given, deps.calendar);
  if ('kind' in schedule) {
    const { path, message } = schedule;
    return refused('invalid_schedule', 'The schedule is invalid: see details.', {
      details: [{ path: `/schedule${path}`, message }],
    });
  }
  const endsAt = iso(deps.clock.now() + deps.horizonMs);
  const text = canonicalJson({
    request: fingerprintText(read.request, 'execute/webhook', null),
    schedule: schedule as Json,
    catchUpSeconds,
  });
  const fingerprint = toHex(deps.keyedHash.mac('schedule', text));
  return { read, webhook, defined: { schedule, catchUpSeconds, endsAt, fingerprint } };
}
