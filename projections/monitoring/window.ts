// What finished in a window, row by row: minutes up to the first full hour, and hours from there on. Sums over these rows
// are those over the window's minutes alone.
import { sql } from 'drizzle-orm';
import { iso } from '#src/lib/iso.ts';
import { monitoringHours, monitoringMinutes } from './table.ts';

const HOUR_MS = 3_600_000;

/** The first full hour of a window that begins with the minute `since`: its first minute, `YYYY-MM-DDTHH:MM`. */
export function firstHour(since: string): string {
  const hour = Math.ceil(Date.parse(`${since}:00.000Z`) / HOUR_MS);
  return iso(hour * HOUR_MS).slice(0, 16);
}

/** Columns of `finishedSince`. `minute`: of an hour its first one. */
export const FINISHED = {
  minute: sql.raw('f."minute"'),
  succeeded: sql.raw('f."succeeded"'),
  failed: sql.raw('f."failed"'),
  durations: sql.raw('f."durations"'),
};

/** After every hour: only minutes are read. */
export const NO_HOURS = '9999-12-31T23:00';

const since = sql.placeholder('since');
const hours = sql.placeholder('hours');

/** Takes the parameters `since`, the window's first minute, and `hours`, its first full hour or `NO_HOURS`. */
export const finishedSince = sql`(
  select m."minute", m."succeeded", m."failed", m."durations" from ${monitoringMinutes} m
    where m."minute" >= ${since} and m."minute" < ${hours}
  union all
  select h."hour" || ':00', h."succeeded", h."failed", h."durations" from ${monitoringHours} h
    where h."hour" >= left(${hours}::text, 13)
) f`;
