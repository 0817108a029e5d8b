// A process is killed in the middle of a call, and PostgreSQL is stopped: the process that gets the repeats closes the job
// by its own observation of the lease, without the read models. Takes as long as the shortest lease, and 30 s.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Cluster, makeCluster } from '#test/support/cluster.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { logLines, waitFor } from '#test/support/service.ts';
import { recordedIn } from '#test/support/service-log.ts';
import { execute } from '#test/support/service-world.ts';

const needs = needsPostgres();
/** Lease: one attempt of 1 s and 15 s; then 30 s, and up to two sweeps of 5 s. The rest is for a slow machine. */
const WITHIN_MS = 80_000;

let cluster: Cluster;
before(async () => {
  if (!needs.skip) cluster = await makeCluster('sqlite+postgres', { ownPostgres: true });
});
after(() => cluster?.end());

test('sqlite+postgres: callers of a dead process get its job’s end while PostgreSQL is stopped', {
  ...needs,
  timeout: 180_000,
}, async () => {
  const { world, postgres } = cluster;
  const [dead, alive] = [await cluster.start(), await cluster.start()];
  const called = Promise.withResolvers<void>();
  world.target.answer(() => {
    called.resolve();
    return new Promise(() => undefined);
  });
  const request = { url: world.target.url('/hook'), idempotencyKey: 'orphan', timeoutMs: 1000 };
  const cut = execute(dead, request).catch(() => null);
  await called.promise;
  await dead.kill();
  await cut;
  await postgres.power?.stop();
  const first = await execute(alive, request);
  assert.deepEqual([first.status, first.body.error?.code], [409, 'idempotency_in_progress']);
  const begun = performance.now();
  const answer = await waitFor(
    'the end of the job',
    async () => {
      const again = await execute(alive, request);
      return again.status === 409 ? undefined : again;
    },
    { everyMs: 1000, limitMs: WITHIN_MS },
  );
  assert.ok(performance.now() - begun > 45_000, 'not before the lease and its grace are over');
  assert.deepEqual(
    [answer.status, answer.body.idempotentReplay, answer.body.job.errorCategory],
    [502, true, 'interrupted_unknown'],
  );
  const events = await recordedIn(world.dataDir);
  const types = events.filter(({ stream }) => stream === `job-${answer.body.job.id}`);
  assert.deepEqual(
    types.map(({ type }) => type),
    ['JobStarted', 'AttemptMade', 'JobCompleted', 'ReceiptSigned'],
  );
  await postgres.power?.start();
  const { code, stdout } = await alive.stop();
  assert.equal(code, 0);
  assert.deepEqual(
    logLines(stdout).filter(({ code: of }) => of === 'internal_error'),
    [],
  );
});
