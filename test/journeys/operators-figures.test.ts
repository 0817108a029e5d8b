// Metrics and health of the real service: the metrics add up, and each part is unavailable for some time.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { type Figures, readFigures } from '#test/support/figures.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { recordedIn } from '#test/support/service-log.ts';
import { type ErrorBody, execute, get, makeWorld, type World } from '#test/support/service-world.ts';

type Health = { readonly ok: boolean; readonly checks: Readonly<Record<string, { ok: boolean } | null>> };

async function figures({ url }: Service): Promise<Figures> {
  const { status, headers, body } = await get<string>(`${url}/metrics`);
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/plain; version=0.0.4; charset=utf-8']);
  return readFigures(body);
}

/** Status, then each part as in `/health`. */
async function health({ url }: Service) {
  const { status, body } = await get<Health>(`${url}/health`);
  const parts = Object.entries(body.checks).map(([part, check]) => [part, check?.ok ?? null]);
  return { status, ok: body.ok, ...Object.fromEntries(parts) };
}

const GOOD = {
  status: 200,
  ok: true,
  eventLog: true,
  signingKey: true,
  transparencyLog: true,
  readModels: true,
  projections: true,
  facilitator: null,
  chain: null,
};

async function assertAlive({ url }: Service): Promise<void> {
  assert.equal((await get(`${url}/health/live`)).status, 200);
}

const LOG_UP = ['relay_part_up', { part: 'event_log' }] as const;
const ROWS_UP = ['relay_part_up', { part: 'read_models' }] as const;

describe('one process', () => {
  let world: World;
  let service: Service;
  const held = Promise.withResolvers<object>();
  before(async () => {
    world = await makeWorld({
      handler: ({ path }) => (path === '/held' ? held.promise : { status: path === '/bad' ? 500 : 200 }),
    });
    service = await world.start();
  });
  after(() => world.end());

  test('the metrics match the calls', async () => {
    const call = (path: string, more = {}) => execute(service, { url: world.target.url(path), ...more });
    const started = await figures(service);
    assert.equal(started.of('relay_jobs_total', { status: 'succeeded' }), 0);
    const waiting = call('/held');
    await waitFor('one is in flight', async () => {
      const seen = await figures(service);
      // The other one is the request for the metrics.
      return seen.of('relay_executions_in_flight') === 1 && seen.of('http_requests_in_flight') === 2;
    });
    await Promise.all([call('/good'), call('/good'), call('/bad', { retry: { attempts: 2, backoffMs: 0 } })]);
    const keyed = { idempotencyKey: 'once' };
    const replays = [await call('/good', keyed), await call('/good', keyed)];
    assert.deepEqual(
      replays.map(({ body }) => body.idempotentReplay),
      [false, true],
    );
    const refusedCall = await execute(service, { url: 'https://10.0.0.1/' });
    assert.equal(refusedCall.status, 400);
    held.resolve({});
    assert.equal((await waiting).status, 200);

    const seen = await figures(service);
    assert.equal(seen.of('relay_jobs_total', { status: 'succeeded' }), 4);
    assert.equal(seen.of('relay_jobs_total', { status: 'failed' }), 1);
    assert.equal(seen.of('relay_attempts_total', { outcome: 'succeeded' }), 4);
    assert.equal(seen.of('relay_attempts_total', { outcome: 'target_server_error' }), 2);
    assert.equal(seen.of('relay_executions_in_flight'), 0);
    const route = { route: '/api/execute/webhook', method: 'POST' };
    const answered = ['200', '502', '400'].map((status) =>
      seen.of('http_requests_total', { ...route, status }),
    );
    assert.deepEqual(answered, [5, 1, 1]);
    assert.equal(seen.of('http_request_duration_seconds_count', route), 7);
    const stored = { outcome: 'stored' };
    // The keys at the start, two of each job, one of the retry that was announced, one of the key that was claimed, and
    // what the transparency log signs on its schedule.
    await waitFor('as many appends as the log holds', async () => {
      const log = await recordedIn(world.dataDir);
      const checkpoints = log.filter(({ type }) => type === 'CheckpointSigned').length;
      const counted = (await figures(service)).of('relay_event_log_append_seconds_count', stored);
      return counted === 1 + 2 * 5 + 1 + 1 + checkpoints;
    });
    assert.equal(seen.of(...LOG_UP), 1);
    assert.equal(seen.of(...ROWS_UP), 1);
    await waitFor('the read models have it all', async () => {
      const now = await figures(service);
      return now.of('relay_projection_lag_events') === 0 && now.of('relay_projection_lag_seconds') === 0;
    });
  });

  test('a request through a proxy gets 404, unless METRICS_PUBLIC=true', async () => {
    const asked = async (url: string) => {
      const response = await fetch(`${url}/metrics`, { headers: { 'x-forwarded-for': '127.0.0.1' } });
      return [response.status, await response.text()] as const;
    };
    const [status, text] = await asked(service.url);
    const { error }: ErrorBody = JSON.parse(text);
    assert.deepEqual([status, error.code], [404, 'route_not_found']);
    const post = await fetch(`${service.url}/metrics`, { method: 'POST' });
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD, OPTIONS']);
    const other = await makeWorld();
    try {
      const open = await other.start({ METRICS_PUBLIC: 'true' });
      assert.equal((await asked(open.url))[0], 200);
    } finally {
      await other.end();
    }
  });

  test('the event log unavailable: health is 503 with that part, the metrics show it, and all recovers', async () => {
    assert.deepEqual(await health(service), GOOD);
    const lock = new DatabaseSync(join(world.dataDir, 'events.db'));
    try {
      lock.exec('PRAGMA busy_timeout = 20000; BEGIN IMMEDIATE');
      // An append shows that the log is unavailable.
      const waiting = execute(service, { url: world.target.url('/good') });
      const seen = await waitFor('health reports it', async () => {
        const now = await health(service);
        return !now.ok && now;
      });
      assert.deepEqual([seen.status, seen.ok, seen.eventLog, seen.readModels], [503, false, false, true]);
      await assertAlive(service);
      const metrics = await waitFor('an append of unknown fate', async () => {
        const now = await figures(service);
        return now.of('relay_event_log_append_seconds_count', { outcome: 'unknown' }) !== 0 && now;
      });
      assert.deepEqual([metrics.of(...LOG_UP), metrics.of(...ROWS_UP)], [0, 1]);
      const { status, body } = await waiting;
      assert.deepEqual([status, body.error.code], [503, 'event_log_unavailable']);
    } finally {
      lock.exec('ROLLBACK');
      lock.close();
    }
    await waitFor('health is good again', async () => (await health(service)).ok);
    assert.equal((await figures(service)).of(...LOG_UP), 1);
  });
});

const needs = needsPostgres();

describe('over PostgreSQL', needs, () => {
  let server: PostgresServer;
  let world: World;
  before(async () => {
    server = await postgresServer();
    world = await makeWorld();
  });
  after(async () => {
    await world.end();
    await server.remove();
  });

  test('PostgreSQL unavailable: health stays 200 with that part not ok, the metrics show it', async () => {
    const service = await world.start({ DATABASE_URL: await server.newDatabase() });
    const { power } = server;
    await waitFor('health is good', async () => (await health(service)).ok);
    const [build] = (await figures(service)).labels('relay_build_info');
    assert.equal(build?.storage, 'sqlite+postgres');
    if (power === null) return;
    await power.stop();
    const seen = await health(service);
    assert.deepEqual([seen.status, seen.ok, seen.eventLog, seen.readModels], [200, false, true, false]);
    await assertAlive(service);
    const metrics = await figures(service);
    assert.deepEqual([metrics.of(...LOG_UP), metrics.of(...ROWS_UP)], [1, 0]);
    assert.equal((await execute(service, { url: world.target.url() })).status, 200);
    await waitFor(
      'the lag grows',
      async () => ((await figures(service)).of('relay_projection_lag_seconds') ?? 0) > 0,
    );
    await power.start();
    await waitFor('all is well again', async () => {
      const now = await figures(service);
      return now.of(...ROWS_UP) === 1 && now.of('relay_projection_lag_seconds') === 0;
    });
  });
});
