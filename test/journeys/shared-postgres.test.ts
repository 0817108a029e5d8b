// Several processes of one machine over one embedded log and one PostgreSQL: one call for one key at any process, jobs of a
// dead process closed by another, and PostgreSQL stopped and restarted.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fromJwkSet } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { sleep } from '#src/lib/time.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { logLines, type Service, waitFor } from '#test/support/process/service.ts';
import { contradictionsOf } from '#test/support/world/receipt-log-world.ts';
import { recordedIn } from '#test/support/world/service-log.ts';
import { payloadOf } from '#test/support/world/service-receipts.ts';
import {
  type ErrorBody,
  type Executed,
  execute,
  get,
  makeWorld,
  type Report,
  type World,
} from '#test/support/world/service-world.ts';

const needs = needsPostgres();
/** attempts × timeoutMs + 15 s. */
const LEASE_MS = 1000 + 15_000;
const GRACE_MS = 30_000;

type Health = {
  readonly ok: boolean;
  readonly checks: Readonly<Record<string, { readonly ok: boolean } | null>>;
};
type Monitoring = { readonly stats: { readonly total: number; readonly running: number } };

const hang = () => new Promise<undefined>(() => undefined);
const at = (service: Service, link = '') => `${service.url}${new URL(link).pathname}`;
const monitoring = (service: Service) =>
  get<Monitoring & ErrorBody>(`${service.url}/api/monitoring/executions`);

async function assertVerifies(service: Service, { job, links }: Executed): Promise<void> {
  const { status, body } = await get<Report>(at(service, links.verifyJob));
  assert.deepEqual([status, body.ok, body.jobId, body.checks.length], [200, true, job.id, 18]);
}

describe('two processes', needs, () => {
  let server: PostgresServer;
  let world: World;
  let DATABASE_URL: string;
  let left: Service;
  let right: Service;
  /** A separate deployment, with one process that is killed and one that keeps running. */
  let mourning: World;
  let survivor: Service;
  const heldRequest = () => ({ url: mourning.target.url(), timeoutMs: 1000, idempotencyKey: 'held' });

  before(async () => {
    server = await postgresServer({ own: true });
    world = await makeWorld();
    mourning = await makeWorld({ handler: hang });
    DATABASE_URL = await server.newDatabase();
    const OTHER_URL = await server.newDatabase();
    const [dying, staying] = await Promise.all([1, 2].map(() => mourning.start({ DATABASE_URL: OTHER_URL })));
    assert.ok(dying && staying);
    survivor = staying;
    const cut = execute(dying, heldRequest()).then(
      () => false,
      () => true,
    );
    await waitFor('the request is at the target', () => mourning.target.requests.length === 1);
    await dying.kill();
    assert.equal(await cut, true);
    [left, right] = await Promise.all([world.start({ DATABASE_URL }), world.start({ DATABASE_URL })]);
  });
  after(async () => {
    await world.end();
    await mourning.end();
    await server.remove();
  });

  test('a job in flight at the death of its process is not touched before its lease is over', async () => {
    const id = mourning.target.requests[0]?.headers['webhook-id'];
    const job = await get<{ status: string }>(`${survivor.url}/api/jobs/${id}`);
    assert.deepEqual([job.status, job.body.status], [200, 'running']);
    const { status, body } = await execute(survivor, heldRequest());
    assert.deepEqual(
      [status, body.error.code, body.error.details],
      [409, 'idempotency_in_progress', { jobId: id, links: { job: `${survivor.url}/api/jobs/${id}` } }],
    );
  });

  test('100 calls on one key over both: one request; then both replay the same', async () => {
    const request = { url: world.target.url('/one'), idempotencyKey: 'one', body: { a: 1 } };
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => execute(n % 2 === 0 ? left : right, request)),
    );
    const originals = answers.filter(({ status, body }) => status === 200 && !body.idempotentReplay);
    assert.equal(originals.length, 1);
    const { job, receipt } = originals[0]?.body ?? assert.fail();
    for (const { status, body } of answers) {
      if (status === 200) assert.deepEqual([body.job, body.receipt.jws], [job, receipt.jws]);
      else assert.deepEqual([status, body.error.code], [409, 'idempotency_in_progress']);
    }
    for (const service of [left, right]) {
      const { status, body } = await execute(service, request);
      assert.deepEqual(
        [status, body.idempotentReplay, body.job, body.receipt],
        [200, true, job, { ...receipt, replay: true }],
      );
    }
    assert.equal(world.target.requests.filter(({ path }) => path === '/one').length, 1);
  });

  test('the answer of one process is visible at the other at once', async () => {
    for (let n = 0; n < 20; n++) {
      const [here, there] = n % 2 === 0 ? [left, right] : [right, left];
      const { status, body } = await execute(here, { url: world.target.url('/at-once') });
      assert.equal(status, 200);
      const receipt = await get<{ jws: string }>(at(there, body.links.receipt));
      assert.deepEqual([receipt.status, receipt.body.jws], [200, body.receipt.jws]);
      await assertVerifies(there, body);
    }
  });

  test('they share one transparency log: one of them signs at a time, both publish the same', async () => {
    const jwks = await get(`${left.url}/.well-known/jwks.json`);
    const newest = await waitFor('a checkpoint over all', async () => {
      const { body } = await execute(left, {
        url: world.target.url('/one'),
        idempotencyKey: 'one',
        body: { a: 1 },
      });
      // Two keys, the job of all calls, and those of the calls across.
      const note = body.checkpoint ?? '';
      return parseCheckpoint(note)?.size === 2 + 1 + 20 && note;
    });
    await waitFor('the other has it, too', async () => {
      const shown = await get<string>(`${right.url}/log/checkpoint`);
      return shown.body === newest;
    });
    const events = await recordedIn(world.dataDir);
    const origin = parseCheckpoint(newest)?.origin ?? '';
    assert.deepEqual(await contradictionsOf(events, fromJwkSet(jwks.body) ?? [], origin), []);
  });

  test('PostgreSQL stopped: executions are answered, reads are 503, health is 200; back: all caught up', async () => {
    assert.ok(server.power, 'a server of its own: unset TEST_DATABASE_URL');
    const before = (await monitoring(left)).body.stats.total;
    await server.power.stop();
    const meanwhile: Executed[] = [];
    let fastest = Number.POSITIVE_INFINITY;
    for (let n = 0; n < 6; n++) {
      const request = { url: world.target.url('/outage'), idempotencyKey: `outage ${n}` };
      const here = n % 2 === 0 ? left : right;
      const begun = performance.now();
      const { status, body } = await execute(here, request);
      fastest = Math.min(fastest, performance.now() - begun);
      assert.equal(status, 200);
      const replay = await execute(n % 2 === 0 ? right : left, request);
      assert.deepEqual([replay.status, replay.body.job], [200, body.job]);
      meanwhile.push(body);
    }
    assert.ok(fastest < 5000, `${fastest} ms: an answer waits a second for its links, not for PostgreSQL`);
    assert.equal(world.target.requests.filter(({ path }) => path === '/outage').length, 6);
    const [some] = meanwhile;
    assert.ok(some);
    // Answers to public lists may be cached for 500 ms.
    await sleep(600);
    for (const service of [left, right]) {
      const { job, receipt, verifyJob, verifyReceipt, proof }: Executed['links'] = some.links;
      const reads: string[] = [job, receipt, verifyJob, verifyReceipt].map((link) => at(service, link));
      for (const path of ['/api/proofs/recent', '/api/monitoring/executions', '/api/trust']) {
        reads.push(`${service.url}${path}`);
      }
      for (const url of reads) {
        const { status, headers, body } = await get<ErrorBody>(url);
        assert.deepEqual([status, body.error?.code], [503, 'read_models_unavailable'], url);
        assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/, url);
      }
      assert.equal((await get(at(service, proof))).status, 503);
      const health = await get<Health>(`${service.url}/health`);
      const { eventLog, readModels } = health.body.checks;
      assert.deepEqual(
        [health.status, health.body.ok, eventLog?.ok, readModels?.ok],
        [200, false, true, false],
      );
      assert.equal((await get(`${service.url}/health/live`)).status, 200);
    }

    await server.power.start();
    for (const service of [left, right]) {
      const { stats } = await waitFor('all are caught up', async () => {
        const { status, body } = await monitoring(service);
        return status === 200 && body.stats.total >= before + meanwhile.length && body;
      });
      assert.deepEqual([stats.total, stats.running], [before + meanwhile.length, 0]);
      for (const body of meanwhile) await assertVerifies(service, body);
      await waitFor('health is good again', async () => (await get<Health>(`${service.url}/health`)).body.ok);
    }
  });

  test('both end regularly', async () => {
    for (const service of [left, right]) {
      const { code, stdout, stderr } = await service.stop();
      assert.deepEqual([code, stderr], [0, '']);
      const errors = logLines(stdout).filter(({ level }) => level === 'error');
      assert.ok(
        errors.every(({ code }) => code === 'read_models_unavailable'),
        JSON.stringify(errors),
      );
    }
  });

  test('the dead process: the other closes its job, after lease and grace, with a receipt, never sent again', async () => {
    const { body } = await waitFor(
      'the other process has closed the job',
      async () => {
        const answer = await execute(survivor, heldRequest());
        if (answer.status !== 409) return answer;
        assert.equal(answer.body.error.code, 'idempotency_in_progress');
        return undefined;
      },
      { limitMs: 100_000, everyMs: 200 },
    );
    const { job, receipt, idempotentReplay } = body;
    assert.deepEqual(
      [job.status, job.errorCategory, job.attempts, idempotentReplay],
      ['failed', 'interrupted_unknown', 1, true],
    );
    const watched = Date.parse(job.completedAt) - Date.parse(job.createdAt);
    assert.ok(watched >= LEASE_MS + GRACE_MS, `closed after ${watched} ms`);
    assert.deepEqual(
      payloadOf(receipt.jws).attempts.map(({ sent, errorCategory }) => [sent, errorCategory]),
      [['maybe', 'interrupted_unknown']],
    );
    await assertVerifies(survivor, body);
    assert.equal(mourning.target.requests.length, 1);
  });
});
