// Queries over a store that does not answer: each fails at its own limit.
import { equal, ok, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { readModels } from '#projections/read-models.ts';
import type { Db } from '#projections/rows.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';

const UNAVAILABLE = { code: 'read_models_unavailable' };

test('read-models: a query of a store that does not open fails after a second, also one that came later', async () => {
  const never = new Promise<Db>(() => undefined);
  const models = readModels({ open: () => never }, systemClock(), async () => true);
  const begun = performance.now();
  const took = async (answer: Promise<unknown>) => {
    await rejects(answer, UNAVAILABLE);
    return performance.now() - begun;
  };
  const first = took(models.job.find('job_1'));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const second = took(models.job.find('job_2'));
  const [one, two] = [await first, await second];
  ok(one >= 950 && one < 1900, `${one}`);
  ok(two >= one + 200, `${one} ${two}`);
});

test('read-models: what the store throws is the cause of the fault', async () => {
  const cause = new Error('no connection');
  const models = readModels({ open: () => Promise.reject(cause) }, systemClock(), async () => true);
  const fault = await models.proof.recent(1).catch((thrown: unknown) => thrown);
  equal(fault instanceof Error && fault.cause, cause);
});
