// One process with embedded stores: the log's file accepts no writes for some time; the read models' files are damaged
// while the process is down.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { PGlite } from '@electric-sql/pglite';
import {
  assertAway,
  assertHealth,
  assertReplays,
  hitsOf,
  isHealthy,
  jobOf,
} from '#test/support/given/fault-words.ts';
import { holdBack } from '#test/support/log/held-appends.ts';
import { logLines, type Service, waitFor } from '#test/support/process/service.ts';
import { assertStands } from '#test/support/world/service-stands.ts';
import { type Executed, execute, makeWorld, type World } from '#test/support/world/service-world.ts';

/** Calls without a key, at each fault. */
const REFUSED = 20;

describe('all embedded', () => {
  let world: World;
  let service: Service;
  const answered: Executed[] = [];

  before(async () => {
    world = await makeWorld({ embedded: true });
    service = await world.start();
    const { body } = await execute(service, { url: world.target.url('/known'), idempotencyKey: 'known' });
    answered.push(body);
  });
  after(() => world.end());

  // Another connection that keeps its lock; and a full file, which SQLite reports at the write.
  const faults: readonly (readonly [title: string, name: string, hold: () => () => void])[] = [
    [
      'the log’s file is locked by another',
      'locked',
      () => {
        const other = new DatabaseSync(join(world.dataDir, 'events.db'), { timeout: 10_000 });
        other.exec('BEGIN IMMEDIATE');
        return () => {
          other.exec('ROLLBACK');
          other.close();
        };
      },
    ],
    ['no write to the log succeeds', 'failing', () => holdBack(world.dataDir)],
  ];
  for (const [title, name, hold] of faults) {
    test(`${title}: 503 and nothing is sent, reads continue; afterwards: normal without a restart`, async () => {
      const keyed = { url: world.target.url(`/${name}-key`), idempotencyKey: name };
      const release = hold();
      const [withKey, decided, ...without] = await Promise.all([
        execute(service, keyed),
        jobOf(service, answered[0]?.job.id ?? ''),
        ...Array.from({ length: REFUSED }, () => execute(service, { url: world.target.url(`/${name}`) })),
      ]);
      assert.deepEqual([decided.status, decided.body.status], [200, 'succeeded']);
      for (const answer of [withKey, ...without]) {
        assertAway(answer, 'event_log_unavailable');
        assert.match(answer.body.error.message, /nothing was sent/);
      }
      assert.equal(withKey.body.error.details, undefined);
      for (const { body } of without) {
        assert.match(body.error.message, /nothing will be: repeat the call/);
        assert.equal(body.error.details, undefined);
      }
      assert.deepEqual([hitsOf(world, `/${name}`), hitsOf(world, `/${name}-key`)], [0, 0]);
      release();
      const { status, body } = await waitFor('the key is claimed or free', async () => {
        const answer = await execute(service, keyed);
        return answer.status !== 409 && answer;
      });
      assert.equal(status, 200);
      await assertReplays(service, keyed, body);
      await assertHealth(service);
      await assertStands(service, body);
      answered.push(body);
      assert.deepEqual([hitsOf(world, `/${name}`), hitsOf(world, `/${name}-key`)], [0, 1]);
    });
  }

  test('rows are deleted while it is down: none is ever missing, all are rebuilt, logged once', async () => {
    for (const loss of ['truncate jobs', 'delete from transparency_leaves where leaf_index = 3']) {
      assert.equal((await service.stop()).code, 0);
      const rows = await PGlite.create(join(world.dataDir, 'read-models', 'pglite'));
      const { rows: found } = await rows.query<{ schema: string }>(
        'select schema from read_model_generations',
      );
      await rows.exec(`set search_path to "${found[0]?.schema}"; ${loss}`);
      await rows.close();
      service = await world.start();
      for (const { job } of answered)
        await waitFor('the job', async () => {
          const { status } = await jobOf(service, job.id);
          assert.ok(status === 200 || status === 503, `${status} after ${loss}`);
          return status === 200;
        });
      const lost = logLines(service.stdout()).filter(({ msg }) => /lost rows/.test(String(msg)));
      assert.deepEqual(
        lost.map(({ level, loss: what }) => [level, what]),
        [['warn', loss.replace(/^(\w+) (?:from )?(\w+).*/, '$1 of $2')]],
      );
      await waitFor('health', async () => isHealthy(service));
      for (const body of answered) await assertStands(service, body);
    }
  });
});
