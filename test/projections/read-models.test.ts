// Queries over a store that does not answer: each fails at its own limit.
import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { readModels } from '#projections/read-models.ts';
import type { Db } from '#projections/rows.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { silent } from '#test/support/log/read-store.ts';
import { collectingLogger, letPass, manualClock, quiet } from '#test/support/world/fakes.ts';

const UNAVAILABLE = { code: 'read_models_unavailable' };

test('read-models: a query of a store that does not open fails after a second, also one that came later', async () => {
  const never = new Promise<Db>(() => undefined);
  const clock = manualClock();
  const models = readModels({ store: { open: () => never }, clock, logger: silent, ready: async () => true });
  const failedAt = async (answer: Promise<unknown>) => {
    await rejects(answer, UNAVAILABLE);
    return clock.monotonic();
  };
  const first = failedAt(models.job.find('job_1'));
  await letPass(clock, clock.sleep(300));
  const second = failedAt(models.job.find('job_2'));
  deepEqual(await letPass(clock, Promise.all([first, second])), [1000, 1300]);
});

test('read-models: what the store throws is the cause of the fault', async () => {
  const cause = new Error('no connection');
  const models = readModels({
    store: { open: () => Promise.reject(cause) },
    clock: systemClock(),
    logger: silent,
    ready: async () => true,
  });
  const fault = await models.proof.recent(1).catch((thrown: unknown) => thrown);
  equal(fault instanceof Error && fault.cause, cause);
});

test('read-models: a defect is thrown as it is, and is logged if its caller was answered before', async () => {
  const clock = manualClock();
  const logger = collectingLogger();
  const opening = Promise.withResolvers<Db>();
  // A handle without the methods of a database: every query over it is a defect.
  const models = (open: () => Promise<Db>) =>
    readModels({ store: { open }, clock, logger, ready: async () => true });
  const broken = { select: 1 } as unknown as Db;
  await rejects(models(async () => broken).job.find('job_1'), TypeError);
  equal(logger.lines.length, 0, 'the caller reports it');
  const late = models(() => opening.promise).job.find('job_1');
  await rejects(letPass(clock, late), UNAVAILABLE);
  opening.resolve(broken);
  await quiet();
  deepEqual(
    logger.lines.map(({ level, message }) => [level, message]),
    [['bug', 'a query of the read models failed behind its answer']],
  );
});

test('read-models: of a store that never answers, a bounded number of queries is kept; one a second tries again', async () => {
  const clock = manualClock();
  const hanging: (() => void)[] = [];
  let frozen = true;
  let opened = 0;
  const store = {
    async open(): Promise<Db> {
      opened++;
      if (frozen) await new Promise<void>((resolve) => hanging.push(resolve));
      throw new Error('no connection');
    },
  };
  const models = readModels({ store, clock, logger: silent, ready: async () => true });
  for (let batch = 0; batch < 4; batch++) {
    const answers = Array.from({ length: 1500 }, (_, n) => rejects(models.job.find(`job_${n}`), UNAVAILABLE));
    await letPass(clock, Promise.all(answers));
  }
  const kept = opened;
  ok(kept <= 4100, `${kept} queries are kept`);
  const refused = Array.from({ length: 50 }, () => rejects(models.job.find('job_x'), UNAVAILABLE));
  await letPass(clock, Promise.all(refused));
  ok(opened <= kept + 1, 'only the one that tries');
  // It answers again: those that hang are settled, and others get through.
  frozen = false;
  for (const wake of hanging) wake();
  await quiet();
  const before = opened;
  for (const id of ['job_1', 'job_2']) await rejects(models.job.find(id), UNAVAILABLE);
  equal(opened, before + 2);
});
