// One suite for the runner and the queries over every read store: an adapter's test file supplies the harness.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { durationsOf } from '#projections/monitoring/query.ts';
import { runningJobs } from '#projections/monitoring/table.ts';
import { type ReadModels, readModels } from '#projections/read-models.ts';
import { retention } from '#projections/table.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import { decodeEvent } from '#src/domain/event-codec.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import {
  at,
  checkpointCosigned,
  checkpointSigned,
  keyActivated,
  keyRetired,
  paymentRefunded,
  paymentReserved,
  paymentSettled,
} from '#test/support/given/given-events.ts';
import {
  appendAll,
  decisionAppend,
  decisionIdOf,
  histories,
  type JobPlan,
  jobAppends,
  jobIdOf,
  newEvent,
  PAY_AND_EXECUTE,
  PLAN,
  type PlannedAppend,
  receiptIdOf,
} from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import {
  allRows,
  commonLog,
  emptyRows,
  folded,
  modelsOver,
  project,
  type ReadStoreHarness,
  reached,
  rowsFor,
  runnerOver,
  silent,
} from '#test/support/log/read-store.ts';
import { generationContract } from './read-model-generations.contract.ts';
import { hoursContract } from './read-model-hours.contract.ts';
import { ledgerContract } from './read-model-ledger.contract.ts';
import { purgeContract } from './read-model-purge.contract.ts';
import { replayContract } from './read-model-replay.contract.ts';
import { revokedContract } from './read-model-revoked.contract.ts';
import { scheduleContract } from './read-model-schedules.contract.ts';
import { treeContract } from './read-model-tree.contract.ts';
import { wholeContract } from './read-model-whole.contract.ts';

/** Only a hanging test meets it. */
const PATIENCE_MS = 20_000;

/** Not `whole`: only how rows are written, and one loss of rows of each kind. */
export function readModelContract(harness: ReadStoreHarness, { whole = true } = {}): void {
  describe(harness.name, harness.needs, () => {
    after(() => harness.end());
    runnerContract(harness);
    treeContract(harness);
    wholeContract(harness, { all: whole });
    if (!whole) return;
    replayContract(harness);
    generationContract(harness);
    purgeContract(harness);
    hoursContract(harness);
    ledgerContract(harness);
    revokedContract(harness);
    scheduleContract(harness);
    queryContract(harness);
  });
}

function runnerContract(harness: ReadStoreHarness): void {
  test('any history in any batches gives the rows of the pure fold, and again after a replay', async () => {
    const store = await harness.fresh();
    await fc.assert(
      fc.asyncProperty(histories, fc.integer({ min: 1, max: 12 }), async (appends, batchSize) => {
        const log = await commonLog();
        await emptyRows(await rowsFor(log, store));
        const half = Math.floor(appends.length / 2);
        await appendAll(log, appends.slice(0, half));
        // Live and after a restart: the second runner continues where the first one stopped.
        for (const rest of [[], appends.slice(half)]) {
          const runner = runnerOver(log, store, { batchSize });
          await appendAll(log, rest);
          const head = await log.head();
          if (head !== null) await reached(runner, head);
          await runner.stop();
        }
        const expected = await folded(log);
        assert.deepEqual(await allRows(await rowsFor(log, store)), expected);
        await emptyRows(await rowsFor(log, store));
        assert.deepEqual(await allRows(await project(log, store, { batchSize: 200 })), expected);
      }),
      { numRuns: harness.runs(12) },
    );
  });

  test('no event that decodes stops the runner, however odd its values', async () => {
    const store = await harness.fresh();
    const odd = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 12 }),
      fc.constantFrom('\u0000', '\ud800', '9999-99-99T99:99:99.999Z', 'a.b.c', '9'.repeat(20), ''),
      fc.constantFrom(0, 1, 3, 1e300, Number.MAX_SAFE_INTEGER, 2 ** 31, null),
    );
    const log = memoryLog();
    const plans = Array.from({ length: 6 }, (_, seed) => [
      decisionAppend(seed),
      ...jobAppends({ ...PLAN, seed, decision: seed, answers: [500, 200], paid: true }),
      {
        stream: 'keys-relay',
        events: [
          keyActivated(),
          keyRetired({ compromisedAt: at(0) }),
          checkpointSigned(),
          checkpointCosigned(),
        ],
      },
    ]);
    const values = fc.sample(fc.tuple(odd, fc.nat(), fc.nat()), harness.runs(6000));
    let decoded = 0;
    for (const [value, pick, field] of values) {
      const events = plans[pick % plans.length]?.flatMap((append) => append.events) ?? [];
      const event = events[pick % events.length];
      if (event === undefined) continue;
      const names = Object.keys(event.data);
      const data = { ...event.data, [names[field % names.length] ?? '']: value } as unknown as JsonObject;
      if (decodeEvent({ type: event.type, data }) === null) continue;
      decoded++;
      await log.append(`job-odd${decoded}`, 'no_stream', [newEvent({ type: event.type, data })]);
    }
    assert.ok(decoded > harness.runs(6000) / 20, `only ${decoded} odd events decode`);
    const runner = runnerOver(log, store);
    await reached(runner, await log.head());
    await runner.stop();
  });

  test('a row is deleted whatever its key: empty, or full of what separates values', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    const warned: string[] = [];
    const appends = jobAppends(PLAN);
    for (const jobId of ['', '\u001e', '\u001f~', '","']) {
      for (const { stream, events } of appends) {
        const named = events.map((event) => ({ ...event, data: { ...event.data, jobId } }) as DomainEvent);
        const runner = runnerOver(log, store, {
          logger: { ...silent, warn: (message) => warned.push(message) },
        });
        const last = await appendAll(log, [
          { stream: `${stream}-${encodeURIComponent(jobId)}`, events: named },
        ]);
        await reached(runner, last);
        await runner.stop();
      }
    }
    const running = (await rowsFor(log, store)).select().from(runningJobs);
    assert.deepEqual(await running, [], 'all have ended');
    assert.deepEqual(warned, [], 'no rows were lost, and none had to be built again');
  });

  test('rows, checkpoint and waiters move together; what is not there yet is waited for, bounded', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    const runner = runnerOver(log, store);
    const models = readModels({
      store: runner,
      clock: systemClock(),
      logger: silent,
      ready: async () => true,
    });
    assert.equal(await runner.reachedHead(), true, 'an empty log is reached');
    const [started, ended] = jobAppends(PLAN);
    assert.ok(started && ended);
    const first = await appendAll(log, [started]);
    await reached(runner, first);
    assert.equal((await models.job.find(jobIdOf(1)))?.status, 'running');
    assert.equal(await runner.caughtUp(`${first}9`, 20), false, 'no event is at that position');
    const [last] = await Promise.all([appendAll(log, [ended]), runner.reachedHead()]);
    await reached(runner, last);
    assert.equal((await models.job.find(jobIdOf(1)))?.receiptId, receiptIdOf(1));
    assert.equal(await runner.reachedHead(), true);
    assert.deepEqual(runner.lag(), { lagEvents: 0, lagMs: 0 });
    assert.equal(runner.position(), last);
    await runner.stop();
    assert.equal(
      await runner.caughtUp(`${last}9`, PATIENCE_MS),
      false,
      'no caller waits for a runner that ended',
    );
  });

  test('while the log is unavailable, a miss cannot be distinguished from a delay; then the rows follow automatically', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    await appendAll(log, jobAppends(PLAN));
    log.setAway(true);
    const runner = runnerOver(log, store);
    assert.equal(await runner.reachedHead(), false);
    log.setAway(false);
    await reached(runner, await log.head());
    await runner.stop();
  });
}

function queryContract(harness: ReadStoreHarness): void {
  const given = (...plans: readonly Partial<JobPlan>[]) =>
    givenAppends(plans.flatMap((plan, seed) => jobAppends({ ...PLAN, seed, ...plan })));

  async function givenAppends(appends: readonly PlannedAppend[]) {
    const store = await harness.fresh();
    const log = await commonLog();
    await emptyRows(await rowsFor(log, store));
    await appendAll(log, appends);
    const db = await project(log, store);
    return { models: modelsOver(db), db };
  }

  test('a job as the API shows it, without payer or payment', async () => {
    const { models } = await given({ paid: true, answers: [404] });
    const job = await models.job.find(jobIdOf(0));
    assert.deepEqual(Object.keys(job ?? {}).sort(), [
      'attemptLog',
      'attempts',
      'createdAt',
      'decisionId',
      'errorCategory',
      'id',
      'method',
      'mode',
      'receiptId',
      'refund',
      'requestHash',
      'responseHash',
      'responseOk',
      'responseStatus',
      'status',
      'target',
      'type',
      'updatedAt',
    ]);
    assert.ok(!JSON.stringify(job).includes('0x2222'));
    assert.deepEqual(
      [job?.type, job?.target.scheme, job?.responseOk, job?.responseStatus],
      ['webhook', 'https', false, 404],
    );
    const forVerification = await models.job.findForVerification(jobIdOf(0));
    assert.equal(forVerification?.payment?.amount, '3000');
    assert.equal(forVerification?.targetCommitment, job?.target.commitment);
    assert.equal(await models.job.find('job_none'), null);
    assert.equal(await models.job.findForVerification('job_none'), null);
  });

  test('a receipt with its payload as signed; receipts that do not verify are counted', async () => {
    const { models } = await given({}, { receiptGood: false });
    const receipt = await models.receipt.find(receiptIdOf(0));
    assert.equal(receipt?.payload?.receiptId, receiptIdOf(0));
    assert.equal(receipt?.payload?.jobId, jobIdOf(0));
    assert.equal(receipt?.signature, `ed25519:${receipt?.jws.split('.')[2]}`);
    assert.equal(receipt?.verified, true);
    assert.equal((await models.receipt.find(receiptIdOf(1)))?.verified, false);
    assert.equal(await models.receipt.find('rcpt_none'), null);
    assert.equal(await models.store.countUnverified(), 1);
  });

  test('proofs newest first, as many as asked; failures of the window newest first', async () => {
    const at = (minutes: number, plan: Partial<JobPlan> = {}) => ({
      startedAtMs: PLAN.startedAtMs + minutes * 60_000,
      ...plan,
    });
    const { models } = await given(
      at(3),
      at(1, { answers: [500] }),
      at(4, { end: 'running' }),
      at(2, { answers: [null] }),
      at(0, { answers: [404] }),
    );
    const ids = (found: readonly { jobId: string }[]) => found.map(({ jobId }) => jobId);
    assert.deepEqual(ids(await models.proof.recent(10)), [2, 0, 3, 1, 4].map(jobIdOf));
    assert.deepEqual(ids(await models.proof.recent(2)), [2, 0].map(jobIdOf));
    const since = new Date(PLAN.startedAtMs + 60_000).toISOString().slice(0, 16);
    assert.deepEqual(ids(await models.proof.recentFailures(since, 10)), [3, 1].map(jobIdOf));
    assert.deepEqual(ids(await models.proof.recentFailures(since, 1)), [3].map(jobIdOf));
    assert.deepEqual(await models.proof.find(jobIdOf(1)), {
      jobId: jobIdOf(1),
      receiptId: receiptIdOf(1),
      status: 'failed',
      method: 'PUT',
      attempts: 1,
      responseStatus: 500,
      responseOk: false,
      receiptVerified: true,
      errorCategory: 'target_server_error',
      createdAt: new Date(PLAN.startedAtMs + 60_000).toISOString(),
      updatedAt: new Date(PLAN.startedAtMs + 60_250).toISOString(),
      publicFieldsOnly: true,
    });
    assert.equal(await models.proof.find('job_none'), null);
  });

  test('decisions newest first, as many as asked; a list contains no hash', async () => {
    const at = (minutes: number) => PLAN.startedAtMs + minutes * 60_000;
    const { models } = await givenAppends([
      decisionAppend(1, at(2)),
      decisionAppend(2, at(1)),
      decisionAppend(3, at(3)),
      ...jobAppends({ ...PLAN, seed: 5, decision: 3, startedAtMs: at(4), answers: [503] }),
    ]);
    const recent = await models.decision.recent(10);
    assert.deepEqual(
      recent.map(({ decisionId }) => decisionId),
      [3, 1, 2].map(decisionIdOf),
    );
    assert.deepEqual(await models.decision.recent(1), recent.slice(0, 1));
    const found = await models.decision.find(decisionIdOf(3));
    const { actionHash, policyHash, ...summary } = found ?? {};
    assert.deepEqual(summary, recent[0]);
    assert.deepEqual(summary, {
      decisionId: decisionIdOf(3),
      ...PAY_AND_EXECUTE,
      createdAt: new Date(at(3)).toISOString(),
      expiresAt: new Date(at(3) + 86_400_000).toISOString(),
      outcome: {
        status: 'failed',
        jobId: jobIdOf(5),
        receiptId: receiptIdOf(5),
        receiptVerified: true,
        responseStatus: 503,
        errorCategory: 'target_server_error',
        attempts: 1,
      },
    });
    assert.match(`${actionHash} ${policyHash}`, /^[0-9a-f]{64} [0-9a-f]{64}$/);
    assert.equal(await models.decision.find('dec_none'), null);
  });

  test('monitoring before the first job, and over a window of whole minutes', async () => {
    const none = await given();
    const nowMs = PLAN.startedAtMs + 10 * 60_000;
    const zero = {
      total: 0,
      succeeded: 0,
      failed: 0,
      running: 0,
      recentTotal: 0,
      recentSucceeded: 0,
      recentFailed: 0,
      recentRunning: 0,
    };
    assert.deepEqual(await none.models.monitoring.summary(nowMs, 60_000), {
      stats: { ...zero, lastUpdatedAt: null },
      failureRate: 0,
      overdue: 0,
    });
    // Two end ten minutes before now, two in the minute before now; one runs.
    const late = { startedAtMs: nowMs - 60_000 };
    const { models } = await given(
      {},
      { answers: [500] },
      late,
      { ...late, answers: [null] },
      { ...late, end: 'running' },
    );
    const lastUpdatedAt = new Date(nowMs - 60_000 + 250).toISOString();
    const stats = { total: 5, succeeded: 2, failed: 2, running: 1, recentRunning: 1, lastUpdatedAt };
    assert.deepEqual(await models.monitoring.summary(nowMs, 60_000), {
      stats: { ...stats, recentTotal: 3, recentSucceeded: 1, recentFailed: 1 },
      failureRate: 0.5,
      overdue: 1,
    });
    assert.deepEqual((await models.monitoring.summary(nowMs, 86_400_000)).stats, {
      ...stats,
      recentTotal: 5,
      recentSucceeded: 2,
      recentFailed: 2,
    });
    const totals = { total: 5, succeeded: 2, failed: 2, running: 1, lastUpdatedAt };
    assert.deepEqual(await models.monitoring.totals(nowMs), { ...totals, overdue: 1 });
    const leaseEnd = nowMs - 60_000 + 27_000;
    assert.equal((await models.monitoring.summary(leaseEnd, 60_000)).overdue, 0, 'a lease holds to its end');
    assert.equal((await models.monitoring.summary(leaseEnd + 1, 60_000)).overdue, 1);
    assert.deepEqual(await models.monitoring.recoveryCandidates(10), [jobIdOf(4)]);
  });

  test('monitoring in buckets that say as much as the whole, durations among it', async () => {
    const none = await given();
    const minute = (ms: number) => new Date(PLAN.startedAtMs + ms).toISOString().slice(0, 16);
    const starts = [-10, -5, 0, 5].map((minutes) => minute(minutes * 60_000));
    const empty = starts.map((start) => ({ start, succeeded: 0, failed: 0, durationMs: null }));
    const shown = async ({ monitoring }: Pick<ReadModels, 'monitoring'>) => {
      const found = await monitoring.series(starts);
      const buckets = found.map(({ durations, ...bucket }) => ({
        ...bucket,
        durationMs: durationsOf([{ durations }]),
      }));
      return { buckets, durationMs: durationsOf(found) };
    };
    assert.deepEqual(await shown(none.models), { buckets: empty, durationMs: null });
    const late = { startedAtMs: PLAN.startedAtMs + 120_000 };
    const { models, db } = await given(
      { attemptMs: 20 },
      { answers: [500], attemptMs: 20 },
      { ...late, attemptMs: 100_000 },
      { startedAtMs: PLAN.startedAtMs + 86_400_000 },
      { startedAtMs: PLAN.startedAtMs - 300_000, end: 'interrupted_unknown' },
      // Before the first bucket.
      { startedAtMs: PLAN.startedAtMs - 600_000 - 60_000 },
    );
    const series = () => shown(models);
    // Two of the four durations are in the first class, from 0 to 25 ms; 250 ms end a class from 200 ms on.
    const expected = {
      buckets: [
        empty[0],
        { ...empty[1], failed: 1 },
        { ...empty[2], succeeded: 2, failed: 1, durationMs: { p50: 19, p95: 60_000 } },
        { ...empty[3], succeeded: 1, durationMs: { p50: 225, p95: 225 } },
      ],
      durationMs: { p50: 19, p95: 60_000 },
    };
    assert.deepEqual(await series(), expected);
    // As version 1 of the model projected them.
    await db.execute(sql`update monitoring_minutes set durations = null`);
    assert.deepEqual(await series(), {
      buckets: expected.buckets.map((bucket) => ({ ...bucket, durationMs: null })),
      durationMs: null,
    });
  });

  test('payments charged, served, refunded and open; a job shows its refund', async () => {
    const settled = (seed: number) => ({
      stream: `payment-${seed}`,
      events: [paymentReserved({ jobId: jobIdOf(seed) }), paymentSettled({ jobId: jobIdOf(seed) })],
    });
    const refunded = paymentRefunded({ jobId: jobIdOf(1), evidence: 'operator' });
    const { models } = await givenAppends([
      ...[0, 1, 2, 3].map(settled),
      ...jobAppends({ ...PLAN, seed: 0, paid: true }),
      ...jobAppends({ ...PLAN, seed: 1, paid: true, end: 'interrupted_unknown' }),
      ...jobAppends({ ...PLAN, seed: 2, paid: true, end: 'running' }),
      { stream: 'payment-1', events: [refunded] },
    ]);
    assert.deepEqual(await models.trust.payments(), { charged: 4, served: 1, refunded: 1, open: 2 });
    const { transaction, refundedAt } = refunded.data;
    assert.deepEqual((await models.job.find(jobIdOf(1)))?.refund, {
      transaction,
      verified: false,
      refundedAt,
    });
    assert.equal((await models.job.find(jobIdOf(0)))?.refund, null);
  });

  test('receipts for the trust summary, counts in store, and what the purge took', async () => {
    const { models, db } = await given(
      {},
      { attemptMs: 120_000 },
      { receiptGood: false },
      { end: 'running' },
    );
    const latestVerifiedAt = new Date(PLAN.startedAtMs + 120_000).toISOString();
    assert.deepEqual(await models.trust.receipts('2026-01-01'), {
      receipts: 3,
      verified: 2,
      recentVerified: 2,
      latestVerifiedAt,
    });
    const since = latestVerifiedAt.slice(0, 16);
    assert.equal((await models.trust.receipts(since)).recentVerified, 1);
    assert.deepEqual(await models.store.counts(), { jobs: 4, receipts: 3 });
    const purged = {
      jobsBefore: '2026-01-01T00:00:00.000Z',
      receiptsBefore: null,
      jobsPurged: 3,
      receiptsPurged: 1,
    };
    await db.insert(retention).values({ id: 'live', ...purged });
    assert.deepEqual(await models.store.counts(), { jobs: 1, receipts: 2 });
  });
}
