// A schedule as the buyer ordered it, and the relay's 402 for one of its runs compared with it.
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Instant } from '#src/domain/event-fields.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import type { Calendar } from '#src/domain/schedule/calendar.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import {
  apartFrom,
  checkedSchedule,
  dueAfter,
  dueNext,
  type PaidSchedule,
  ScheduleRequest,
} from '#src/domain/schedule/plan.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { iso } from '#src/lib/iso.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { readOffer } from './offer.ts';
import type { SignedAuthorization } from './payment.ts';
import type { Answer } from './present.ts';
import { type Mismatch, PurchaseError } from './purchase-error.ts';
import { checkedTarget } from './target-check.ts';

/** The body of the purchase, as every relay accepts it. */
export type ScheduleBody = {
  readonly text: string;
  readonly webhook: WebhookRequest;
  readonly schedule: PaidSchedule;
  readonly catchUpSeconds: number;
  readonly targetHost: string;
};

const isRequest = shapeCheck(ScheduleRequest);

/** Throws `OperatorError` for a body that every relay refuses. */
export function readScheduleBody(value: unknown, calendar: Calendar): ScheduleBody {
  if (!isRequest(value)) {
    const path = Value.Errors(ScheduleRequest, value).First()?.path || 'the content';
    throw new OperatorError(
      `${path} does not fit {webhook, schedule, catchUpSeconds?}: see the schema in /openapi.json`,
    );
  }
  const { webhook, catchUpSeconds = SCHEDULE_LIMITS.catchUpSeconds.default } = value;
  const text = JSON.stringify(value);
  const { hostname: targetHost } = checkedTarget(webhook, text);
  const schedule = checkedSchedule(value.schedule, calendar);
  if ('kind' in schedule) throw new OperatorError(`schedule${schedule.path}: ${schedule.message}`);
  return { text, webhook, schedule, catchUpSeconds, targetHost };
}

type When = { readonly nowMs: number; readonly calendar: Calendar };

/** The buyer's clock and the relay's may differ by this. */
const CLOCK_TOLERANCE_MS = 60_000;

/** The next due times, Unix ms: at most `count`, later than now and than the run that was bought last. */
export function dueTimes(
  schedule: PaidSchedule,
  lastDueMs: number | null,
  count: number,
  { nowMs, calendar }: When,
): readonly number[] {
  const times: number[] = [];
  const after = lastDueMs === null ? nowMs : Math.max(apartFrom(lastDueMs), nowMs);
  for (let due = dueAfter(schedule, after, calendar); due !== null && times.length < count; ) {
    times.push(due);
    due = dueNext(schedule, due, calendar);
  }
  return times;
}

export const OfferedRun = Type.Object({ n: Type.Integer({ minimum: 1 }), dueAt: Instant });
export type OfferedRun = Static<typeof OfferedRun>;
const isOfRun = shapeCheck(
  Type.Object({ extensions: Type.Object({ 'scheduled-run': Type.Object({ info: OfferedRun }) }) }),
);

/**
 * The run that a 402 is for, after its due time and the life that it asks for a payment were compared with the schedule.
 * Throws `PurchaseError`.
 */
export function offeredRun(
  { headers }: Answer,
  { schedule, catchUpSeconds }: ScheduleBody,
  last: OfferedRun | null,
  maxTimeoutSeconds: number,
  { nowMs, calendar }: When,
): OfferedRun {
  const offer = readOffer(headers);
  const run = isOfRun(offer) ? offer.extensions['scheduled-run'].info : null;
  const lastDueMs = last && Date.parse(last.dueAt);
  const next = (at: number) => dueTimes(schedule, lastDueMs, 1, { nowMs: at, calendar })[0] ?? null;
  const [earliest, latest] = [next(nowMs - CLOCK_TOLERANCE_MS), next(nowMs + CLOCK_TOLERANCE_MS)];
  const dueMs = run && Date.parse(run.dueAt);
  const fits =
    run !== null &&
    dueMs !== null &&
    (dueMs === earliest || dueMs === next(nowMs) || dueMs === latest) &&
    (last === null ? run.n === 1 : run.n > last.n);
  if (!fits) {
    const due = next(nowMs) ?? earliest;
    const expected = `run ${last === null ? 1 : `after ${last.n}`}, due ${due === null ? 'never' : iso(due)}`;
    const actual = run === null ? 'no extension scheduled-run' : `run ${run.n}, due ${run.dueAt}`;
    throw new PurchaseError({ member: 'offer.scheduled_run', expected: `${expected} (${CLOCK})`, actual });
  }
  const { validBefore } = chargeWindow(run.dueAt, catchUpSeconds);
  const longest = validBefore + CLOCK_TOLERANCE_MS / 1000 - Math.floor(nowMs / 1000);
  if (maxTimeoutSeconds > longest)
    throw new PurchaseError({
      member: 'offer.max_timeout_seconds',
      expected: `at most ${longest} (${CLOCK})`,
      actual: String(maxTimeoutSeconds),
    });
  return run;
}

const CLOCK = 'by the schedule and the clock of this machine';

/** A payment is valid from this long before its run is due: clocks differ. */
const EARLY_SECONDS = 60;

/**
 * Empty if the run that a payment was taken for is one of the schedule, later than the last, that it can be charged for. It
 * may be the next one after that of the offer, whose time has passed meanwhile.
 */
export function misplaced(
  { n, dueAt }: OfferedRun,
  last: OfferedRun | null,
  { schedule }: ScheduleBody,
  { validAfter, validBefore }: Pick<SignedAuthorization, 'validAfter' | 'validBefore'>,
  calendar: Calendar,
): readonly Mismatch[] {
  const [dueMs, lastMs] = [Date.parse(dueAt), last === null ? 0 : Date.parse(last.dueAt)];
  const isDue = dueAfter(schedule, dueMs - 1, calendar) === dueMs && dueMs > lastMs;
  const isCovered = dueMs / 1000 >= Number(validAfter) && dueMs / 1000 < Number(validBefore);
  if (isDue && isCovered && n > (last?.n ?? 0)) return [];
  const due = iso(dueSecondsOf({ validAfter }) * 1000);
  const expected = `a run after ${last?.n ?? 0}, due ${due}`;
  return [{ member: 'answer.run', expected, actual: `run ${n}, due ${dueAt}` }];
}

/** Of the run that a payment was signed for: Unix seconds. */
export const dueSecondsOf = ({ validAfter }: Pick<SignedAuthorization, 'validAfter'>): number =>
  Number(validAfter) + EARLY_SECONDS;

/** When the payment of a run can be charged, whatever a 402 asks for: Unix seconds. */
export function chargeWindow(dueAt: string, catchUpSeconds: number) {
  const due = Math.floor(Date.parse(dueAt) / 1000);
  return {
    validAfter: due - EARLY_SECONDS,
    validBefore: due + catchUpSeconds + RUN_TIMES.authorizationMarginSeconds,
  };
}
