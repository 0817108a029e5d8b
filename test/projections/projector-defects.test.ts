// Defects that no retry removes: batches that always fail, and rows that are lost whenever they are built. The projector
// retries with growing pauses, until the rows are past the events at which they failed.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type SQL, StringChunk, sql } from 'drizzle-orm';
import { Projector } from '#projections/projector.ts';
import { READ_MODELS } from '#projections/registry.ts';
import type { Db } from '#projections/rows.ts';
import { appendAll, jobAppends, judgeBySignature, PLAN } from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { pgliteHarness } from '#test/support/log/read-store.ts';
import { collectingLogger, letPass, manualClock, quiet } from '#test/support/world/fakes.ts';

const harness = pgliteHarness();
after(() => harness.end());

const isBatch = ({ queryChunks }: SQL) =>
  queryChunks.some((chunk) => chunk instanceof StringChunk && chunk.value.join('').includes('project_batch'));

type Defect = {
  /** Called while a batch is folded; true: the projection of an event throws. */
  readonly throws?: () => boolean;
  /** Called before a batch is written. */
  readonly before?: (db: Db) => Promise<unknown>;
  /** Called after it. */
  readonly after?: (db: Db) => Promise<unknown>;
};

/** A projector with a defect, and the time of each batch that it tries. */
async function given({ throws = () => false, before, after: then }: Defect) {
  const store = await harness.fresh();
  const clock = manualClock();
  const logger = collectingLogger();
  const log = memoryLog();
  await appendAll(log, jobAppends(PLAN));
  const triedAt: number[] = [];
  const handles = new Map<Db, Db>();
  const execute = (db: Db) => async (statement: SQL) => {
    if (!isBatch(statement)) return db.execute(statement);
    triedAt.push(clock.monotonic());
    await before?.(db);
    const written = await db.execute(statement);
    await then?.(db);
    return written;
  };
  const handle = (db: Db): Db => {
    const wrapped = new Proxy(db, {
      get: (target, name) => (name === 'execute' ? execute(target) : Reflect.get(target, name, target)),
    });
    handles.set(db, wrapped);
    return wrapped;
  };
  const open = async (schema: string) => {
    const db = await store.open(schema);
    return handles.get(db) ?? handle(db);
  };
  const models = READ_MODELS.map((model): (typeof READ_MODELS)[number] => ({
    ...model,
    project(event, facts) {
      if (model.name !== 'job' || !throws()) return model.project(event, facts);
      triedAt.push(clock.monotonic());
      throw new TypeError('this event cannot be projected');
    },
  }));
  const deps = { log, store: { ...store, open }, clock, logger, judgeReceipt: judgeBySignature };
  const projector = new Projector(deps, { models });
  const until = async (met: () => boolean) => {
    for (await quiet(); !met(); await quiet()) clock.advanceToNext();
  };
  const gaps = () => triedAt.slice(1).map((at, n) => at - (triedAt[n] ?? 0));
  const lines = () => logger.lines.map(({ level, message }) => [level, message]);
  const stop = () => letPass(clock, projector.stop());
  return { projector, log, clock, triedAt, gaps, lines, until, stop };
}

/** Before each batch of a session events gather. */
const LINGER_MS = 100;
const PAUSES_MS = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000];

for (const [what, broken] of [
  ['the projection of an event throws', (is: () => boolean) => ({ throws: is })],
  [
    'its statement fails',
    (is: () => boolean) => ({
      before: async () => {
        if (is()) throw Object.assign(new Error('wrong'), { code: '22P02' });
      },
    }),
  ],
] as const)
  test(`projector: a batch that always fails (${what}) is retried with pauses that grow to 60 s, and logged as a defect once`, async () => {
    let isBroken = true;
    const { projector, log, triedAt, gaps, lines, until, stop } = await given(broken(() => isBroken));
    await until(() => triedAt.length > PAUSES_MS.length);
    assert.deepEqual(
      gaps(),
      PAUSES_MS.map((ms) => ms + LINGER_MS),
    );
    assert.deepEqual(lines(), [
      ['bug', 'the projector failed'],
      ['warn', 'Events cannot be projected into the read models: the projector repeats.'],
    ]);
    assert.equal(projector.state, 'batch_failed');
    assert.equal(projector.readable(), true, 'what was projected before can be read');
    isBroken = false;
    const head = await log.head();
    await until(() => projector.position() === head);
    assert.deepEqual(lines().slice(2), [['info', 'the read models are projected again']]);
    await stop();
  });

test('projector: rows that are lost whenever they are built are built again after 4 times as long, then ever more rarely', async () => {
  let isBroken = true;
  const deletes = async (db: Db) => isBroken && db.execute(sql`delete from jobs`);
  const { projector, log, triedAt, gaps, until, stop } = await given({ after: deletes });
  await until(() => triedAt.length > 9);
  const [first = 0, ...rest] = gaps();
  assert.ok(first < 1500, `rows that are lost once are built at once, not after ${first} ms`);
  // A session looks at its rows after a second.
  for (const gap of rest.slice(0, 3)) assert.ok(gap >= 5000 && gap < 7000, `${gap}`);
  assert.ok((rest.at(-1) ?? 0) >= 10_000, `${rest}`);
  await until(() => projector.state === 'rebuilding');
  isBroken = false;
  const head = await log.head();
  await until(() => projector.position() === head);
  assert.equal(await projector.ready(), true);
  await stop();
});
