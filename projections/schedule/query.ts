import { and, desc, eq, inArray, lte, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { type ScheduleRow, type ScheduleRunRow, scheduleRuns, schedules } from './table.ts';

/** What is shown of a run: neither who paid nor what for. */
export type RunRecord = Pick<
  ScheduleRunRow,
  'run' | 'jobId' | 'dueAt' | 'state' | 'reason' | 'startedAt' | 'lateByMs' | 'receiptId'
>;
/** `runs`: the newest, newest first. `open`: runs that are funded and not over. */
export type ScheduleRecord = ScheduleRow & { readonly runs: readonly RunRecord[]; readonly open: number };

const OPEN = ['funded', 'started', 'running'] as const;
const RUNS_MAX = 200;

export function scheduleQueries(db: PgDatabase<PgQueryResultHKT>) {
  const byId = db
    .select()
    .from(schedules)
    .where(eq(schedules.scheduleId, sql.placeholder('id')))
    .prepare('schedule_by_id');
  const { scheduleId, run, jobId, client, dueAt, state, reason, startedAt, lateByMs, receiptId } =
    scheduleRuns;
  const runsOf = db
    .select({ run, jobId, dueAt, state, reason, startedAt, lateByMs, receiptId })
    .from(scheduleRuns)
    .where(eq(scheduleId, sql.placeholder('id')))
    .orderBy(desc(run), desc(scheduleRuns.id))
    .limit(RUNS_MAX)
    .prepare('schedule_runs_of');
  const dueRuns = and(inArray(state, [...OPEN]), lte(dueAt, sql.placeholder('until')));
  // Each client address has begun as many as come before its next one.
  const turn = sql<number>`row_number() over (partition by ${client} order by ${state} = 'funded', ${dueAt})`;
  const turns = db
    .select({ scheduleId, state, dueAt, turn: turn.as('turn') })
    .from(scheduleRuns)
    .where(dueRuns)
    .as('turns');
  const fundedRuns = db
    .select({ id: turns.scheduleId })
    .from(turns)
    .where(eq(turns.state, 'funded'))
    .orderBy(turns.turn, turns.dueAt)
    .limit(sql.placeholder('limit'))
    .prepare('schedule_runs_due');
  const begunRuns = db
    .select({ id: scheduleId })
    .from(scheduleRuns)
    .where(and(inArray(state, ['started', 'running']), lte(dueAt, sql.placeholder('until'))))
    .orderBy(dueAt)
    .limit(sql.placeholder('limit'))
    .prepare('schedule_runs_begun');
  const unfunded = db
    .select({ id: schedules.scheduleId })
    .from(schedules)
    .where(and(eq(schedules.status, 'active'), lte(schedules.nextDueAt, sql.placeholder('until'))))
    .orderBy(schedules.nextDueAt)
    .limit(sql.placeholder('limit'))
    .prepare('schedules_unfunded');
  return {
    async find(id: string): Promise<ScheduleRecord | null> {
      const [row] = await byId.execute({ id });
      if (row === undefined) return null;
      const { position: _, ...schedule } = row;
      const runs = await runsOf.execute({ id });
      const open = runs.filter((one) => OPEN.some((each) => each === one.state)).length;
      return { ...schedule, runs, open };
    },
    /**
     * Schedules with a run that is due by `until` (RFC 3339) and not known as over, at most `limit` of each kind: those to
     * be started, client addresses in turn and the earliest runs first; those that were, and those without a payment.
     */
    async due(until: string, limit: number): Promise<readonly string[]> {
      const found = [];
      for (const query of [fundedRuns, begunRuns, unfunded])
        found.push(...(await query.execute({ until, limit })).map(({ id }) => id));
      return [...new Set(found)];
    },
  };
}
