// The purge beside what it must not touch: projecting, the log, and what can be proven of a job that is gone.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { KEEP_ALL, makePurge, purgeOnce } from '#projections/purge.ts';
import { RETAINED } from '#projections/registry.ts';
import { type Db, rowsOf } from '#projections/rows.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { storedReceipts } from '#src/usecases/receipts/stored-receipts.ts';
import { DEMO, execute } from '#test/support/given/given-call.ts';
import { appendAll, jobAppends, newEvent, PLAN } from '#test/support/given/job-histories.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import {
  pgliteHarness,
  project,
  retentionOf,
  rowsFor,
  runnerOver,
  servedBy,
} from '#test/support/log/read-store.ts';
import { waitFor } from '#test/support/process/service.ts';
import { collectingLogger, manualClock } from '#test/support/world/fakes.ts';
import { world } from '#test/support/world/fakes-world.ts';
import { noTransparency } from '#test/support/world/no-transparency.ts';
import { RECEIPT_CHECKS } from '#test/support/world/service-receipts.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const harness = pgliteHarness();
after(() => harness.end());

async function freshRows(): Promise<Db> {
  const log = memoryLog();
  await log.append('job-other', 'no_stream', [newEvent({ type: 'SomethingElse', data: {} })]);
  return rowsFor(log, await harness.fresh());
}

async function brokenStore() {
  const real = await freshRows();
  const state = { broken: true, transactions: 0 };
  const transaction: Db['transaction'] = async (...given) => {
    state.transactions++;
    if (state.broken) throw new Error('no');
    return real.transaction(...given);
  };
  const db = new Proxy(real, {
    get: (target, name) => (name === 'transaction' ? transaction : Reflect.get(target, name, target)),
  });
  return { state, db };
}

test('purge: permanent rows are never examined', () => {
  const purge = makePurge(
    { clock: manualClock(), logger: collectingLogger(), store: { disposable: true } },
    KEEP_ALL,
  );
  assert.deepEqual(
    [purge.dueInMs(true), purge.dueInMs(false)],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  );
});

test('purge: once a minute for who projects, ten times as rare for who follows', async () => {
  const { state, db } = await brokenStore();
  state.broken = false;
  const clock = manualClock();
  const logger = collectingLogger();
  const purge = makePurge({ clock, logger, store: { disposable: true } }, { jobs: DAY_MS, receipts: DAY_MS });
  assert.deepEqual([purge.dueInMs(true), purge.dueInMs(false)], [0, 0]);
  await purge.step(db);
  assert.deepEqual([purge.dueInMs(true), purge.dueInMs(false)], [MINUTE_MS, 10 * MINUTE_MS]);
  clock.advance(MINUTE_MS);
  assert.deepEqual([purge.dueInMs(true), purge.dueInMs(false)], [0, 9 * MINUTE_MS]);
  assert.deepEqual(logger.lines, []);
});

test('purge: a failure is logged once, repeated after a minute, and stops nothing', async () => {
  const { state, db } = await brokenStore();
  const clock = manualClock();
  const logger = collectingLogger();
  const purge = makePurge({ clock, logger, store: { disposable: true } }, { jobs: DAY_MS, receipts: null });
  for (let n = 0; n < 3; n++) {
    await purge.step(db);
    assert.equal(purge.dueInMs(true), MINUTE_MS);
    clock.advance(MINUTE_MS);
  }
  state.broken = false;
  await purge.step(db);
  state.broken = true;
  await purge.step(db);
  assert.equal(state.transactions, 5);
  const line = 'Old rows cannot be purged: the purge repeats in a minute.';
  assert.deepEqual(
    logger.lines.map(({ message }) => message),
    [line, 'old rows are purged again', line],
  );
});

test('purge: in an embedded store the space of what is gone is used again', async () => {
  const store = await harness.fresh();
  const log = memoryLog();
  const now = PLAN.startedAtMs + 100 * DAY_MS;
  const clock = { ...systemClock(), now: () => now };
  const fill = async (from: number, to: number) => {
    for (let seed = from; seed < to; seed++)
      await appendAll(log, jobAppends({ ...PLAN, seed, startedAtMs: PLAN.startedAtMs + seed }));
    return project(log, store);
  };
  const db = await fill(0, 400);
  const pages = async () => {
    const [row] = await rowsOf<{ bytes: number }>(db, sql`select pg_relation_size('receipts') as bytes`);
    return Number(row?.bytes);
  };
  const full = await pages();
  const purge = makePurge({ clock, logger: collectingLogger(), store }, { jobs: DAY_MS, receipts: DAY_MS });
  let steps = 0;
  for (; steps === 0 || purge.dueInMs(true) < MINUTE_MS / 2; steps++) await purge.step(db);
  // Each deletes 125 jobs and their receipts; then a table each is vacuumed.
  assert.equal(steps, 4 + RETAINED.length);
  assert.equal((await rowsOf(db, sql`select from receipts`)).length, 0);
  await fill(400, 800);
  assert.ok((await pages()) <= full, `${await pages()} bytes, ${full} before`);
});

/** A job that was executed two days ago, and what is stored of it after the purge. */
async function purged(keepDays: { readonly jobs: number; readonly receipts: number }) {
  const it = world();
  const first = await execute(it, DEMO);
  assert.ok(first.kind === 'ran');
  const { job, receipt } = first.execution;
  const store = await harness.fresh();
  const now = it.clock.now() + 2 * DAY_MS;
  const runner = runnerOver(it.log, store, {
    now: () => now,
    retentionMs: { jobs: keepDays.jobs * DAY_MS, receipts: keepDays.receipts * DAY_MS },
  });
  const models = servedBy(runner);
  const list = () => [it.key.record];
  const rows = {
    receipt: models.receipt.find,
    job: models.job.findForVerification,
    jobOfReceipt: models.transparency.jobOf,
  };
  const stored = storedReceipts(rows, {
    log: it.log,
    keys: { list, refresh: async () => list() },
    primitives,
    transparency: noTransparency,
    clock: it.clock,
    reachedHead: runner.reachedHead,
  });
  await waitFor('the purge', async () => {
    const { jobsPurged, receiptsPurged } = await retentionOf(await runner.open());
    return jobsPurged === Number(keepDays.jobs < 2) && receiptsPurged === Number(keepDays.receipts < 2);
  });
  return { it, job, receipt, now, runner, models, ...stored };
}

test('purge: of a job that is gone its receipt is verified alone, and a repeat still gets the stored result', async () => {
  const { it, job, receipt, now, runner, models, verifyJob, verifyReceipt } = await purged({
    jobs: 1,
    receipts: 30,
  });
  assert.equal(await models.job.find(job.id), null);
  const refusal = await verifyJob(job.id);
  assert.ok(isRefused(refusal) && refusal.refused === 'job_not_found');
  const report = await verifyReceipt(receipt.id);
  assert.ok(!isRefused(report));
  assert.equal(report.ok, true);
  assert.deepEqual(
    report.checks.map(({ name }) => name),
    RECEIPT_CHECKS,
  );
  const { stats } = await models.monitoring.summary(now, DAY_MS);
  assert.deepEqual([stats.total, stats.succeeded, stats.recentTotal], [1, 1, 0]);
  assert.deepEqual(await models.store.counts(), { jobs: 0, receipts: 1 });
  await runner.stop();

  it.clock.advance(2 * DAY_MS);
  const again = await execute(it, DEMO);
  assert.ok(again.kind === 'replayed');
  assert.deepEqual([again.execution.job.id, again.execution.receipt.jws], [job.id, receipt.jws]);
  assert.equal(it.outbound.sent.length, 1);
});

test('purge: a receipt that is gone is answered from the log, and verified like the others', async () => {
  const { job, receipt, runner, models, find, verifyJob, verifyReceipt } = await purged({
    jobs: 1,
    receipts: 1,
  });
  assert.deepEqual([await models.receipt.find(receipt.id), await models.job.find(job.id)], [null, null]);
  const found = await find(receipt.id);
  assert.deepEqual([found?.jws, found?.jobId, found?.verified], [receipt.jws, job.id, true]);
  assert.equal(found?.payload?.receiptId, receipt.id);
  const report = await verifyReceipt(receipt.id);
  assert.ok(!isRefused(report));
  assert.equal(report.ok, true);
  assert.deepEqual(
    report.checks.map(({ name }) => name),
    RECEIPT_CHECKS,
  );
  const refusal = await verifyJob(job.id);
  assert.ok(isRefused(refusal) && refusal.refused === 'job_not_found');
  assert.equal(await find(receipt.id.replace(/.$/, (last) => (last === '0' ? '1' : '0'))), null);
  await runner.stop();
});

test('purge: a job that outlives its receipt is verified in all checks, with the receipt of the log', async () => {
  const { job, receipt, runner, models, verifyJob, verifyReceipt } = await purged({ jobs: 30, receipts: 1 });
  assert.equal(await models.receipt.find(receipt.id), null);
  for (const report of [await verifyJob(job.id), await verifyReceipt(receipt.id)]) {
    assert.ok(!isRefused(report));
    assert.equal(report.ok, true);
    assert.ok(report.checks.length > RECEIPT_CHECKS.length);
  }
  await runner.stop();
});

test('purge: nothing to delete moves no horizon', async () => {
  const db = await freshRows();
  const before = { jobs: '2027', receipts: '2027' };
  assert.deepEqual(await purgeOnce(db, before), { gone: 0, more: false });
  assert.equal((await rowsOf(db, sql`select from retention`)).length, 0);
});
