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

export const PaymentPolicy = Closed({
  previewCharged: Type.Literal(false),
  futurePaidSchedulingActive: Type.Literal(false),
  recommendedChargeModel: Type.Literal('per-executed-run'),
});

/** The same in every preview. */
export const SCHEDULE_CHARGE: Static<typeof PaymentPolicy> = {
  previewCharged: false,
  futurePaidSchedulingActive: false,
  recommendedChargeModel: 'per-executed-run',
};

/** The part of the calendar port that is used. Instants are ms since the Unix epoch, days are counted from 1970-01-01. */
export type ReadsCalendar = {
  findZone(name: string): string | null;
  dayOf(instantMs: number, zone: string): number;
  instantOf(day: number, minuteOfDay: number, zone: string): number;
  localTime(instantMs: number, zone: string): string;
};

export type Preview = {
  /** With the zone's name in its canonical case. */
  readonly schedule: Schedule;
  /** Strictly increasing, each later than now: ms since the Unix epoch. */
  readonly runs: readonly number[];
  /** The runs in local time, RFC 3339 with the offset. */
  readonly localTimes: readonly string[];
  /** Whether a run is later than its time of day because the clock skips that time. */
  readonly shifted: boolean;
};

/** `path`: JSON pointer into the schedule. */
export type ScheduleFault = { readonly path: string; readonly message: string };

export function previewOf(
  schedule: Schedule,
  nowMs: number,
  calendar: ReadsCalendar,
): Preview | { readonly fault: ScheduleFault } {
  return schedule.type === 'once' ? previewOnce(schedule, nowMs) : previewDaily(schedule, nowMs, calendar);
}

function previewOnce(schedule: Static<typeof OnceSchedule>, nowMs: number) {
  const at = readInstant(schedule.runAt);
  const fault = (message: string) => ({ fault: { path: '/runAt', message } });
  if (at === null)
    return fault('Expected an instant of ISO 8601 with an offset, such as 2030-01-31T09:00:00+01:00');
  if (at <= nowMs) return fault('Expected an instant in the future');
  return { schedule, runs: [at], localTimes: [schedule.runAt], shifted: false };
}

function previewDaily(daily: Static<typeof DailySchedule>, nowMs: number, calendar: ReadsCalendar) {
  const timezone = calendar.findZone(daily.timezone);
  if (timezone === null) {
    return { fault: { path: '/timezone', message: 'Expected the name of an IANA time zone' } };
  }
  const runs = dailyRuns({ ...daily, timezone }, nowMs, calendar);
  const localTimes = runs.map((run) => calendar.localTime(run, timezone));
  const shifted = localTimes.some((local) => local.slice(11, 16) !== daily.timeOfDay);
  return { schedule: { ...daily, timezone }, runs, localTimes, shifted };
}

/**
 * Starts at the day before: if the clock skips midnight, the run of that day is after midnight. If a zone skips a whole
 * day, the run of that day coincides with the next one and is returned once.
 */
function dailyRuns(
  { timeOfDay, timezone }: Static<typeof DailySchedule>,
  nowMs: number,
  calendar: ReadsCalendar,
): number[] {
  const [hour, minute] = timeOfDay.split(':').map(Number);
  const minuteOfDay = (hour ?? 0) * 60 + (minute ?? 0);
  const runs: number[] = [];
  for (let day = calendar.dayOf(nowMs, timezone) - 1; runs.length < LIMITS.scheduleNextRuns.max; day++) {
    const run = calendar.instantOf(day, minuteOfDay, timezone);
    if (run > (runs.at(-1) ?? nowMs)) runs.push(run);
  }
  return runs;
}

const INSTANT =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d{2}):(\d{2}))$/i;
/** The last instant of RFC 3339, whose years have four digits. */
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
/** Period of the Gregorian calendar. */
const FOUR_CENTURIES_MS = 146_097 * 86_400_000;

/**
 * Returns ms since the Unix epoch, truncated; null unless the text is extended ISO 8601 with an offset, on an existing
 * day, and its UTC time is representable in RFC 3339. Leap seconds are not accepted.
 */
export function readInstant(text: string): number | null {
  const parts = INSTANT.exec(text);
  if (parts === null) return null;
  const part = (index: number) => Number(parts[index] ?? 0);
  const [year, month, day, hour, minute, second] = [part(1), part(2), part(3), part(4), part(5), part(6)];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 59 || part(9) > 23 || part(10) > 59) return null;
  const milliseconds = Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3));
  const offset = (part(9) * 60 + part(10)) * (parts[8] === '-' ? -60_000 : 60_000);
  // Computed 400 years later: `Date.UTC` maps years below 100 to the 20th century.
  const local = Date.UTC(year + 400, month - 1, day, hour, minute, second, milliseconds) - FOUR_CENTURIES_MS;
  return local - offset <= LAST_INSTANT ? local - offset : null;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
