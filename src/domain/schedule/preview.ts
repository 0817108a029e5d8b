// The preview of a schedule: its next runs. Time and calendar are arguments; the target policy is checked elsewhere. Nothing is
// scheduled.
import { type Static, Type } from '@sinclair/typebox';
import { WebhookRequest } from '../job/webhook-request.ts';
import { LIMITS } from '../limits.ts';
import { Closed } from '../schema-parts.ts';
import type { Calendar } from './calendar.ts';
import {
  checkedSchedule,
  dueAfter,
  dueNext,
  PaidSchedule,
  type ScheduleFault,
  scheduleFault,
} from './plan.ts';

export const SchedulePreviewRequest = Type.Object(
  { webhook: WebhookRequest, schedule: PaidSchedule },
  { additionalProperties: false },
);
export type SchedulePreviewRequest = Static<typeof SchedulePreviewRequest>;

/** Of a deployment without paid schedules, and of one with them, which says what a run costs. */
export const PaymentPolicy = Closed({
  previewCharged: Type.Literal(false),
  futurePaidSchedulingActive: Type.Literal(false),
  recommendedChargeModel: Type.Literal('per-executed-run'),
});
export const ActivePaymentPolicy = Closed({
  ...PaymentPolicy.properties,
  futurePaidSchedulingActive: Type.Literal(true),
  pricePerRun: Type.String({ description: 'US dollars, as in $1.50.' }),
});

/** The same in every preview. `pricePerRun` null: schedules cannot be bought. */
export const scheduleCharge = (
  pricePerRun: string | null,
): Static<typeof PaymentPolicy> | Static<typeof ActivePaymentPolicy> => ({
  previewCharged: false,
  ...(pricePerRun === null
    ? { futurePaidSchedulingActive: false }
    : { futurePaidSchedulingActive: true, pricePerRun }),
  recommendedChargeModel: 'per-executed-run',
});

export type Preview = {
  readonly kind: 'preview';
  /** With the zone's name in its canonical case. */
  readonly schedule: PaidSchedule;
  /** Strictly increasing, each later than now: ms since the Unix epoch. */
  readonly runs: readonly number[];
};

/** The last instant of RFC 3339, whose years have four digits. */
const LAST_MS = 253_402_300_799_999;

/** The runs that a schedule which is bought now would have, at least 60 s apart. */
export function previewOf(given: PaidSchedule, nowMs: number, calendar: Calendar): Preview | ScheduleFault {
  const schedule = checkedSchedule(given, calendar);
  if ('kind' in schedule) return schedule;
  const runs: number[] = [];
  let due = dueAfter(schedule, nowMs, calendar);
  for (; due !== null && due <= LAST_MS && runs.length < LIMITS.scheduleNextRuns.max; ) {
    runs.push(due);
    due = dueNext(schedule, due, calendar);
  }
  if (runs.length > 0) return { kind: 'preview', schedule, runs };
  return scheduleFault(schedule.type === 'once' ? '/runAt' : '/startAt', 'Expected an instant in the future');
}
