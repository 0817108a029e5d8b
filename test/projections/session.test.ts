// When a session projects: not for each event, at once for a reader, and never so often that readers take the thread.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Db } from '#projections/rows.ts';
import { Session } from '#projections/session.ts';
import { lingerAfter } from '#projections/session-timing.ts';
import type { LiveMessage, RecordedEvent } from '#src/ports/event-log.ts';
import { letPass, manualClock, quiet } from '#test/support/world/fakes.ts';

const HEAD = { version: 1, position: null, event: null, counts: {}, loss: null };

const event = (n: number): RecordedEvent => ({
  stream: 'other-1',
  revision: BigInt(n),
  position: String(n).padStart(9, '0'),
  id: `id ${n}`,
  type: 'SomethingElse',
  data: {},
  metadata: {},
  created: '2026-01-01T00:00:00.000Z',
});

type Given = {
  /** Whether a reader waits for rows that events up to `position` make. */
  readonly isAwaited: (position: string) => boolean;
  /** A batch takes so long. */
  readonly tookMs: number;
  /** How many events an append has, and how long after the one before it comes. */
  readonly append: { readonly events: number; readonly everyMs: number };
  /** Only this process can change the rows. */
  readonly embedded?: boolean;
  /** How often somebody reads rows. */
  readonly readEveryMs?: number;
};

/** What is done within `ms`: sizes of the batches that are written, how often all tables are read, questions to store and log. */
async function doneWithin(
  ms: number,
  { isAwaited, tookMs, append, embedded = true, readEveryMs = 0 }: Given,
) {
  const clock = manualClock();
  const pass = async (untilMs: number) => {
    void clock.sleep(untilMs - clock.monotonic());
    for (await quiet(); clock.monotonic() < untilMs; await quiet()) clock.advanceToNext();
  };
  const batches: number[] = [];
  async function* subscribeAll(): AsyncGenerator<LiveMessage> {
    yield { kind: 'caught_up' };
    for (let n = 1; ; n++) {
      if (n % append.events === 1 || append.events === 1) await clock.sleep(append.everyMs);
      yield { kind: 'event', event: event(n) };
    }
  }
  const head = { ...HEAD };
  let tableReads = 0;
  let queries = 0;
  const execute = async (statement: { readonly queryChunks: readonly unknown[] }) => {
    queries++;
    const text = JSON.stringify(statement.queryChunks);
    if (text.includes('exists (select')) tableReads++;
    if (!text.includes('project_batch')) return [head];
    await clock.sleep(tookMs);
    head.version++;
    return [{ written: true }];
  };
  const db = { execute } as unknown as Db;
  const store = {
    disposable: embedded,
    layout: { version: '1', statements: [] },
    shared: async () => db,
    open: async () => db,
  };
  const session = new Session(
    { schema: 'one', db, head: HEAD },
    {
      log: {
        subscribeAll,
        readAll: async () => [],
        head: async () => null,
        // The rows are always of this history.
        async readStream(_, { from = 0n } = {}) {
          queries++;
          return [event(Number(from))];
        },
      },
      clock,
      store,
      judgeReceipt: async () => true,
      models: [],
      batchSize: 500,
      until: null,
      progress: { position: null, isAwaited, moved: () => {}, noteCaughtUp: () => {} },
      purge: null,
      isCurrent: async () => true,
      onBarrier: assert.fail,
      onCheck: () => {},
      onBatch: (events) => void batches.push(events),
    },
  );
  const running = session.run();
  for (let read = readEveryMs; readEveryMs > 0 && read < ms; read += readEveryMs) {
    await pass(read);
    session.read();
  }
  await pass(ms);
  session.end();
  await letPass(clock, running);
  return { batches, tableReads, queries };
}

const batchesWithin = async (ms: number, given: Given) => (await doneWithin(ms, given)).batches;

test('session: a batch gathers for 20 times as long as the last one took, 100 ms at least and 500 ms at most', () => {
  assert.equal(lingerAfter(0), 100);
  assert.equal(lingerAfter(10), 200);
  assert.equal(lingerAfter(5000), 500);
});

test('session: without a reader, events gather; a full batch does not wait', async () => {
  const steady = { events: 1, everyMs: 1 };
  const few = await batchesWithin(1000, { isAwaited: () => false, tookMs: 4, append: steady });
  assert.ok(few.length <= 10, `${few}`);
  const many = { events: 1000, everyMs: 50 };
  const full = await batchesWithin(200, { isAwaited: () => false, tookMs: 4, append: many });
  assert.deepEqual(full.slice(0, 4), [500, 500, 500, 500]);
});

test('session: few events of an embedded store gather for 1.5 s, as long as no one reads rows or waits for them', async () => {
  const calls = { isAwaited: () => false, tookMs: 4, append: { events: 5, everyMs: 200 } };
  // The first batch shows that the rows have come near the log's head.
  assert.deepEqual(await batchesWithin(3_600, calls), [5, 40, 40]);
  const shared = await batchesWithin(1_000, { ...calls, embedded: false });
  assert.ok(shared.length >= 4, `${shared}`);
  const read = await batchesWithin(3_600, { ...calls, readEveryMs: 100 });
  assert.ok(read.length >= 12, `${read}`);
  const waited = await batchesWithin(1_001, { ...calls, isAwaited: () => true });
  assert.ok(waited.length >= 5, `${waited}`);
  const busy = { ...calls, append: { events: 5, everyMs: 20 } };
  const [, next = 0] = await batchesWithin(1_000, busy);
  assert.ok(next >= 64 && next < 128, `${next}`);
});

test('session: a reader that waits gets a batch at once, and all events of one append in it', async () => {
  const one = { events: 4, everyMs: 60 };
  // The reader has read the log's head.
  const isAwaited = (position: string) => position >= event(4).position;
  assert.deepEqual(await batchesWithin(61, { isAwaited, tookMs: 1, append: one }), [4]);
});

test('session: readers that wait get a batch after four times the length of the last one: a fifth of the thread', async () => {
  const steady = { events: 1, everyMs: 1 };
  const batches = await batchesWithin(1000, { isAwaited: () => true, tookMs: 4, append: steady });
  assert.ok(batches.length >= 40 && batches.length <= 51, `${batches.length} batches of 4 ms`);
});

const QUIET = { isAwaited: () => false, tookMs: 4, append: { events: 1, everyMs: 3_600_000 } };

test('session: while rows are read, all tables are once a second, those of an embedded store every 10 seconds', async () => {
  const shared = await doneWithin(19_500, { ...QUIET, readEveryMs: 100, embedded: false });
  const embedded = await doneWithin(19_500, { ...QUIET, readEveryMs: 100 });
  assert.deepEqual([shared.tableReads, embedded.tableReads], [19, 2]);
});

test('session: while nothing happens and no one reads, store and log are asked every 10 seconds, and for the first reader at once', async () => {
  for (const embedded of [true, false]) {
    const unread = await doneWithin(605_000, { ...QUIET, embedded });
    // The position, and the tables; there is no last event to look up.
    assert.deepEqual([unread.tableReads, unread.queries], [60, 120]);
    const read = await doneWithin(5_001, { ...QUIET, embedded, readEveryMs: 5_000 });
    assert.equal(read.tableReads, 1);
  }
});
