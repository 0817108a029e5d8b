// Part of the suite over every read store: what is answered and logged while the log is replayed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { appendAll, jobAppends, jobIdOf, PLAN, receiptIdOf } from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { type ReadStoreHarness, reached, runnerOver, servedBy } from '#test/support/log/read-store.ts';

export function replayContract(harness: ReadStoreHarness): void {
  test('lists and counts answer only once the log has been replayed; what is there is found before', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    const first = await appendAll(log, jobAppends({ ...PLAN, seed: 1 }));
    const last = await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
    // The log stops in the middle, and continues after `goOn`.
    const goOn = Promise.withResolvers<void>();
    const halting: EventLog = {
      ...log,
      async *subscribeAll(from) {
        for await (const message of log.subscribeAll(from)) {
          if (message.kind === 'event' && message.event.position > (first ?? '')) await goOn.promise;
          yield message;
        }
      },
    };
    const runner = runnerOver(halting, store);
    const models = servedBy(runner);
    const now = PLAN.startedAtMs + 60_000;
    const ofTheWhole = [
      () => models.proof.recent(5),
      () => models.proof.recentFailures('2026', 5),
      () => models.monitoring.summary(now, 3_600_000),
      () => models.monitoring.totals(now),
      () => models.monitoring.series(['2026-01-01T00:00']),
      () => models.trust.receipts('2026'),
      () => models.store.counts(),
      () => models.store.countUnverified(),
      () => models.decision.recent(5),
    ];
    await reached(runner, first);
    const unavailable = (error: unknown) =>
      error instanceof Fault &&
      error.code === 'read_models_unavailable' &&
      (error.retryAfterSeconds ?? 0) > 0;
    await Promise.all(ofTheWhole.map((ask) => assert.rejects(ask, unavailable)));
    assert.equal((await models.job.find(jobIdOf(1)))?.status, 'succeeded');
    assert.equal((await models.proof.find(jobIdOf(1)))?.status, 'succeeded');
    assert.equal((await models.receipt.find(receiptIdOf(1)))?.id, receiptIdOf(1));
    assert.equal(await models.job.find(jobIdOf(2)), null);
    assert.deepEqual(await models.monitoring.recoveryCandidates(5), []);
    goOn.resolve();
    await reached(runner, last);
    assert.deepEqual(await models.store.counts(), { jobs: 2, receipts: 2 });
    assert.equal(runner.position(), last);
    await Promise.all(ofTheWhole.map((ask) => ask()));
    await runner.stop();

    // Behind again, in a process that had caught up: that is lag, and shown as such.
    await appendAll(log, jobAppends({ ...PLAN, seed: 3 }));
    assert.deepEqual(await models.store.counts(), { jobs: 2, receipts: 2 });
  });
}
