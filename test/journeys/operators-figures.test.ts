// The metrics of the real service add up.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Figures, readFigures } from '#test/support/given/figures.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { recordedIn } from '#test/support/world/service-log.ts';
import { execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

async function figures({ url }: Service): Promise<Figures> {
  const { status, headers, body } = await get<string>(`${url}/metrics`);
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/plain; version=0.0.4; charset=utf-8']);
  return readFigures(body);
}

const LOG_UP = ['relay_part_up', { part: 'event_log' }] as const;
const ROWS_UP = ['relay_part_up', { part: 'read_models' }] as const;

describe('the metrics', () => {
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

  test('they match the calls', async () => {
    const call = (path: string, more = {}) => execute(service, { url: world.target.url(path), ...more });
    const started = await figures(service);
    assert.equal(started.of('relay_jobs_total', { status: 'succeeded' }), 0);
    for (const name of ['relay_disk_free_bytes', 'relay_event_log_bytes'])
      assert.ok((started.of(name) ?? 0) > 0, name);
    assert.equal(started.of('relay_event_log_growth_bytes_per_day'), null, 'the log is new');
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
});
