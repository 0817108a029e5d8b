// Schedules and their preview: the accepted shapes, and the next runs. Time and calendar are arguments; the target policy
// is checked elsewhere. Nothing is scheduled.
import { type Static, Type } from '@sinclair/typebox';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { Closed } from '#src/domain/schema-parts.ts';

export const OnceSchedule = Type.Object(
  {
    type: Type.Literal('once'),
    runAt: Type.String({
      maxLength: LIMITS.scheduleRunAtLength.max,
      description: 'Instant in the future, ISO 8601 with an offset: `2030-01-31T09:00:00+01:00`.',
    }),
  },
  { additionalProperties: false },
);

export const DailySchedule = Type.Object(
  {
    type: Type.Literal('daily'),
    timeOfDay: Type.String({
      pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$',
      description: 'Wall clock time, HH:MM from 00:00 to 23:59.',
    }),
    timezone: Type.String({
      minLength: 1,
      maxLength: LIMITS.scheduleTimezoneLength.max,
      description: 'IANA time zone, in upper or lower case: `Europe/Berlin`.',
    }),
  },
  { additionalProperties: false },
);

export const Schedule = Type.Union([OnceSchedule, DailySchedule]);
export type Schedule = Static<typeof Schedule>;

export const SchedulePreviewRequest = Type.Object(
  { webhook: WebhookRequest, schedule: Schedule },
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

/** Instants and time zones. Reads no clock. Instants: ms since the Unix epoch. */
export interface Calendar {
  /**
   * The instant, rounded down to the ms; null unless the text is extended ISO 8601 with an offset, on an existing day, and
   * its UTC time is representable in RFC 3339. Leap seconds are not accepted. Never throws.
   */
  findInstant(text: string): number | null;
  /**
   * The zone's name as the IANA database writes it, matched without case; a link keeps its own name. null if there is no
   * such zone, also for offsets (`+02:00`) and other text that some parsers accept as a zone. Never throws.
   */
  findZone(name: string): string | null;
  /** The local date of an instant, in days since 1970-01-01. `zone`: of `findZone`. */
  dayOf(instantMs: number, zone: string): number;
  /**
   * The instant of a local time. The earlier one if the local time occurs twice. If it is skipped, the instant computed
   * with the offset before the change: its local time is later by the skipped duration, which may be on the next day.
   * `minuteOfDay`: 0 to 1439.
   */
  instantOf(day: number, minuteOfDay: number, zone: string): number;
}

export type Preview = {
  readonly kind: 'preview';
  /** With the zone's name in its canonical case. */
  readonly schedule: Schedule;
  /** Strictly increasing, each later than now: ms since the Unix epoch. */
  readonly runs: readonly number[];
};

/** `path`: JSON pointer into the schedule. */
export type ScheduleFault = { readonly kind: 'fault'; readonly path: string; readonly message: string };

export function previewOf(schedule: Schedule, nowMs: number, calendar: Calendar): Preview | ScheduleFault {
  return schedule.type === 'once'
    ? previewOnce(schedule, nowMs, calendar)
    : previewDaily(schedule, nowMs, calendar);
}

function previewOnce(
  schedule: Static<typeof OnceSchedule>,
  nowMs: number,
  calendar: Calendar,
): Preview | ScheduleFault {
  const at = calendar.findInstant(schedule.runAt);
  if (at === null) return noInstant('/runAt');
  if (at <= nowMs) return fault('/runAt', 'Expected an instant in the future');
  return { kind: 'preview', schedule, runs: [at] };
}

function previewDaily(
  daily: Static<typeof DailySchedule>,
  nowMs: number,
  calendar: Calendar,
): Preview | ScheduleFault {
  const timezone = calendar.findZone(daily.timezone);
  if (timezone === null) return noZone();
  const schedule = { ...daily, timezone };
  const runs: number[] = [];
  while (runs.length < LIMITS.scheduleNextRuns.max)
    runs.push(nextOnDays(schedule, () => true, runs.at(-1) ?? nowMs, calendar));
  return { kind: 'preview', schedule, runs };
}

const fault = (path: string, message: string): ScheduleFault => ({ kind: 'fault', path, message });

export const noInstant = (path: string): ScheduleFault =>
  fault(path, 'Expected an instant of ISO 8601 with an offset, such as 2030-01-31T09:00:00+01:00');

export const noZone = (): ScheduleFault => fault('/timezone', 'Expected the name of an IANA time zone');

/**
 * The first run later than `afterMs` on a day that `isOn` accepts (days since 1970-01-01). Starts at the day before: if the
 * clock skips midnight, the run of that day is after midnight. If a zone skips a whole day, the run of that day coincides with
 * the next one.
 */
export function nextOnDays(
  { timeOfDay, timezone }: Pick<Static<typeof DailySchedule>, 'timeOfDay' | 'timezone'>,
  isOn: (day: number) => boolean,
  afterMs: number,
  calendar: Calendar,
): number {
  const [hour, minute] = timeOfDay.split(':').map(Number);
  const minuteOfDay = (hour ?? 0) * 60 + (minute ?? 0);
  for (let day = calendar.dayOf(afterMs, timezone) - 1; ; day++) {
    if (!isOn(day)) continue;
    const at = calendar.instantOf(day, minuteOfDay, timezone);
    if (at > afterMs) return at;
  }
}
