// A long log: as many events as REBUILD_EVENTS says (200000 for the figure that issue and README name), else 20000.
import assert from 'node:assert/strict';
import process from 'node:process';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { rowsOf } from '#projections/rows.ts';
import type { EventLog, NewEvent, RecordedEvent } from '#src/ports/event-log.ts';
import { decisionAppend, jobAppends, newEvent, PLAN } from '#test/support/job-histories.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { postgresRebuilds, project } from '#test/support/rebuild-world.ts';

const needs = needsPostgres();
const harness = postgresRebuilds(needs);
const EVENTS = Number(process.env.REBUILD_EVENTS ?? 20_000);

test(`a rebuild of ${EVENTS} events equals the live rows`, { ...needs, timeout: 280_000 }, async () => {
  after(() => harness.end());
  const { store, rebuild } = await harness.fresh();
  const log = longLog(EVENTS);
  await project(log, store, { batchSize: 2000 });
  const db = await store.open();
  const told = sql`select (select count(*)::int from jobs) as jobs, (select count(*)::int from receipts) as receipts`;
  const [live] = await rowsOf<{ jobs: number; receipts: number }>(db, told);
  const begun = performance.now();
  const checked = await rebuild(log, { check: true });
  assert.deepEqual([checked.outcome, checked.eventsHere], ['equal', EVENTS]);
  const between = performance.now();
  const swapped = await rebuild(log);
  const rate = Math.round(EVENTS / ((performance.now() - between) / 1000));
  process.stdout.write(`check ${Math.round(between - begun)} ms, rebuild ${rate} events/s\n`);
  assert.deepEqual(
    [swapped.outcome, swapped.rows.jobs, swapped.rows.receipts],
    ['swapped', live?.jobs, live?.receipts],
  );
  assert.ok((live?.jobs ?? 0) > EVENTS / 8, 'most of them are of jobs');
  assert.equal((await rebuild(log, { check: true })).outcome, 'equal');
});

/** Jobs of all ends, their starts and ends apart; made as they are read, so that no log has to be filled first. */
function longLog(count: number): EventLog {
  const events: RecordedEvent[] = [];
  const lengths = new Map<string, number>();
  const add = (stream: string, { id, type, data, metadata }: NewEvent) => {
    const position = String(events.length + 1).padStart(20, '0');
    const revision = lengths.get(stream) ?? 0;
    lengths.set(stream, revision + 1);
    events.push({
      stream,
      revision: BigInt(revision),
      position,
      id,
      type,
      data,
      metadata,
      created: '2026-01-02T03:04:05.678Z',
    });
  };
  const waiting: (readonly { stream: string; events: readonly NewEvent[] }[])[] = [];
  for (let seed = 0; events.length < count; seed++) {
    const plan = {
      ...PLAN,
      seed,
      startedAtMs: PLAN.startedAtMs + seed * 500,
      answers: seed % 3 === 0 ? ([500, 200] as const) : ([seed % 7 === 0 ? null : 200] as const),
      paid: seed % 2 === 0,
      decision: seed % 10 === 0 ? seed : null,
      receiptGood: seed % 11 !== 0,
    };
    const appends = [...(seed % 10 === 0 ? [decisionAppend(seed)] : []), ...jobAppends(plan)];
    waiting.push(appends.map((append) => ({ stream: append.stream, events: append.events.map(newEvent) })));
    if (waiting.length < 40) continue;
    for (let step = 0; step < 4; step++) {
      for (const job of waiting)
        for (const event of job[step]?.events ?? []) add(job[step]?.stream ?? '', event);
    }
    waiting.length = 0;
  }
  events.length = count;
  const after = (position: string | null) => (position === null ? 0 : Number(position));
  return {
    readAll: async (options) => events.slice(after(options.after), after(options.after) + options.max),
    head: async () => events.at(-1)?.position ?? null,
    async *subscribeAll({ after: from, signal }) {
      for (let at = after(from); at < count && !signal.aborted; at++) {
        const event = events[at];
        if (event !== undefined) yield { kind: 'event', event };
      }
      yield { kind: 'caught_up' };
      await new Promise<void>((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
    append: () => Promise.reject(new Error('this log is read only')),
    readStream: async (stream, { from = 0n, max = events.length } = {}) =>
      events.filter((event) => event.stream === stream && event.revision >= from).slice(0, max),
    health: async () => ({ ok: true }),
    close: async () => undefined,
  };
}
