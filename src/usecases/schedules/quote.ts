// What a run of a schedule costs and when it is due: the order as it is read, and what its payment has to live up to.
import { canonicalJson, type Json } from '#src/domain/canonical-json.ts';
import { toHex, utf8 } from '#src/domain/encoding.ts';
import type { ScheduleDefined } from '#src/domain/events/schedule.ts';
import { fingerprintText, type WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { Calendar } from '#src/domain/schedule/calendar.ts';
import { catchUpEnd, firstRun, laterRun, nextToFund, over } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { checkedSchedule, type ScheduleRequest } from '#src/domain/schedule/plan.ts';
import type { DefinedSchedule, PlannedRun } from '#src/domain/schedule/state.ts';
import { iso } from '#src/lib/iso.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { Vault } from '#src/ports/vault.ts';
import { type ReadRequest, readRequest } from '#src/usecases/decisions/judge-request.ts';
import type { ExecuteDeps } from '#src/usecases/execution/execute-webhook.ts';
import type { SharedClock } from './shared-clock.ts';

export type ScheduleDeps = ExecuteDeps & {
  readonly vault: Vault;
  readonly calendar: Calendar;
  /** No run of a schedule is due later than this after its definition. */
  readonly horizonMs: number;
  readonly sharedClock: Pick<SharedClock, 'agrees'>;
  readonly authorizations: Authorizations;
};

/** Signed authorizations as they are sealed: nothing else of the header that brought them. */
export type Authorizations = {
  write(payment: PresentedPayment): string;
  /** Reads it again as a payment header; refused: it is no payment to this service any more. */
  open(text: string): Promise<PresentedPayment | Refused>;
};

/** What the read models show of a schedule: enough for a quote, never for a decision. */
export type PlanRow = Pick<ScheduleDefined, 'schedule' | 'catchUpSeconds' | 'endsAt'> & {
  readonly status: DefinedSchedule['status'];
  /** The first run without a payment; null: there is none. */
  readonly nextRun: number | null;
  readonly nextDueAt: string | null;
};

/** What one payment for a run has to live up to. */
export type Quote = {
  readonly run: PlannedRun;
  /** Until when the run may start: Unix ms. */
  readonly untilMs: number;
  /** How long an authorization that is signed now has to live. */
  readonly maxTimeoutSeconds: number;
};

export type PlannedSchedule = {
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

/** Of the first run without a payment. It costs no read of the event log: a quote is free. */
export function quoteRun(
  deps: Pick<ScheduleDeps, 'clock' | 'calendar'>,
  row: PlanRow,
): Quote | Refused<'schedule_ended'> {
  const { nextRun, nextDueAt } = row;
  if (row.status === 'cancelled') return over('cancelled');
  const planned = nextRun === null || nextDueAt === null ? null : { run: nextRun, dueAt: nextDueAt };
  const run = planned && laterRun(row, planned, timeOf(deps));
  return run === null ? over('complete') : quoteOf(deps.clock.now(), run, row);
}

export function nextOf(deps: Pick<ScheduleDeps, 'clock' | 'calendar'>, schedule: DefinedSchedule) {
  if (schedule.status === 'cancelled') return over('cancelled');
  return nextToFund(schedule, timeOf(deps)) ?? over('complete');
}

export const scheduleNotFound = () => refused('schedule_not_found', 'There is no such schedule.');

export const noRun = () =>
  refused('invalid_schedule', 'The schedule has no run that can be bought: see details.', {
    details: [{ path: '/schedule', message: 'Expected a run in the future, within the horizon' }],
  });

/** The request as it is ordered. */
export function readPlan(
  deps: ScheduleDeps,
  { webhook, schedule: given, catchUpSeconds = SCHEDULE_LIMITS.catchUpSeconds.default }: ScheduleRequest,
): PlannedSchedule | Refused<'invalid_request' | 'invalid_schedule'> {
  const read = readRequest(webhook, '/webhook');
  if (isRefused(read)) return read;
  const { max } = SCHEDULE_LIMITS.requestBytes;
  if (utf8(JSON.stringify(webhook)).length > max) {
    return refused('invalid_request', 'The request is invalid: see details.', {
      details: [{ path: '/webhook', message: `Expected at most ${max} bytes of JSON` }],
    });
  }
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
