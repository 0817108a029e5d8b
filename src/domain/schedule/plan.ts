// What a paid schedule may be, and when its runs are due. Due times are instants: a funded run keeps its own, whatever
// becomes of the data of its time zone.
import { type Static, Type } from '@sinclair/typebox';
import { WebhookRequest } from '../job/webhook-request.ts';
import { LIMITS } from '../limits.ts';
import { Closed } from '../schema-parts.ts';
import { type Calendar, nextOnDays } from './calendar.ts';
import { SCHEDULE_LIMITS } from './limits.ts';

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

const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;

export const WeeklySchedule = Closed({
  type: Type.Literal('weekly'),
  daysOfWeek: Type.Array(Type.Union(DAYS.map((day) => Type.Literal(day))), {
    minItems: 1,
    maxItems: 7,
    uniqueItems: true,
    description: 'Days in the time zone of the schedule.',
  }),
  timeOfDay: DailySchedule.properties.timeOfDay,
  timezone: DailySchedule.properties.timezone,
});

export const IntervalSchedule = Closed({
  type: Type.Literal('interval'),
  everyMinutes: Type.Integer({
    minimum: LIMITS.scheduleEveryMinutes.min,
    maximum: LIMITS.scheduleEveryMinutes.max,
    description: 'From one run to the next.',
  }),
  startAt: Type.String({
    maxLength: OnceSchedule.properties.runAt.maxLength ?? 64,
    description: 'The first run, or any run before now: ISO 8601 with an offset.',
  }),
});

export const PaidSchedule = Type.Union([OnceSchedule, DailySchedule, WeeklySchedule, IntervalSchedule]);
export type PaidSchedule = Static<typeof PaidSchedule>;

const { idempotencyKey: _, ...scheduled } = WebhookRequest.properties;
/** Without an idempotency key: each run is executed once, by its number. */
export const ScheduledWebhook = Closed(scheduled);

export const ScheduleRequest = Closed({
  webhook: ScheduledWebhook,
  schedule: PaidSchedule,
  catchUpSeconds: Type.Optional(
    Type.Integer({
      minimum: SCHEDULE_LIMITS.catchUpSeconds.min,
      maximum: SCHEDULE_LIMITS.catchUpSeconds.max,
      default: SCHEDULE_LIMITS.catchUpSeconds.default,
      description: 'How late a run may start. Later than this it is skipped and not charged.',
    }),
  ),
});
export type ScheduleRequest = Static<typeof ScheduleRequest>;

/** `path`: JSON pointer into the schedule. */
export type ScheduleFault = { readonly kind: 'fault'; readonly path: string; readonly message: string };

export const scheduleFault = (path: string, message: string): ScheduleFault => ({
  kind: 'fault',
  path,
  message,
});

const noInstant = (path: string): ScheduleFault =>
  scheduleFault(path, 'Expected an instant of ISO 8601 with an offset, such as 2030-01-31T09:00:00+01:00');

const noZone = (): ScheduleFault => scheduleFault('/timezone', 'Expected the name of an IANA time zone');

/** Runs of one schedule are at least this far apart. */
const APART_MS = 60_000;
const MINUTE_MS = 60_000;

/** The schedule with the zone's name in its canonical case, or what no schema can refuse. */
export function checkedSchedule(schedule: PaidSchedule, calendar: Calendar): PaidSchedule | ScheduleFault {
  if (schedule.type === 'once' || schedule.type === 'interval') {
    const [path, text] =
      schedule.type === 'once' ? ['/runAt', schedule.runAt] : ['/startAt', schedule.startAt];
    if (calendar.findInstant(text) !== null) return schedule;
    return noInstant(path);
  }
  const timezone = calendar.findZone(schedule.timezone);
  return timezone === null ? noZone() : { ...schedule, timezone };
}

/** The first due time later than `afterMs`, Unix ms; null: there is none. `schedule`: of `checkedSchedule`. */
export function dueAfter(schedule: PaidSchedule, afterMs: number, calendar: Calendar): number | null {
  switch (schedule.type) {
    case 'once': {
      const at = calendar.findInstant(schedule.runAt);
      return at !== null && at > afterMs ? at : null;
    }
    case 'interval': {
      const start = calendar.findInstant(schedule.startAt);
      if (start === null) return null;
      const every = schedule.everyMinutes * MINUTE_MS;
      return afterMs < start ? start : start + (Math.floor((afterMs - start) / every) + 1) * every;
    }
    case 'daily':
      return nextOnDays(schedule, () => true, afterMs, calendar);
    case 'weekly': {
      const days = new Set<number>(schedule.daysOfWeek.map((day) => DAYS.indexOf(day)));
      // 1970-01-01 was a Thursday.
      return nextOnDays(schedule, (day) => days.has((((day + 3) % 7) + 7) % 7), afterMs, calendar);
    }
    default:
      return schedule satisfies never;
  }
}

/** The run that follows one that was due at `dueMs` is due later than this: Unix ms. */
export const apartFrom = (dueMs: number): number => dueMs + APART_MS - 1;

/** The due time of the run that follows one that was due at `dueMs`; null: there is none. */
export const dueNext = (schedule: PaidSchedule, dueMs: number, calendar: Calendar): number | null =>
  dueAfter(schedule, apartFrom(dueMs), calendar);
