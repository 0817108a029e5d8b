// Canary words in every place of a schedule. They are sent, and occur nowhere else; what is needed to read them again is deleted
// after the run and at the cancellation, and is in no backup: a restored log knows what was ordered, and cannot call it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startService } from '#src/app/service.ts';
import { readServiceConfig } from '#src/config.ts';
import { canaryFor, filesBelow, wordsIn } from '#test/support/given/canaries.ts';
import { runCli } from '#test/support/process/cli.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { type ErrorBody, get, makeWorld, post, type World } from '#test/support/world/service-world.ts';

const [PATH, QUERY, HEADER_NAME, HEADER, BODY_NAME, BODY] = [
  canaryFor('path'),
  canaryFor('query'),
  canaryFor('headername'),
  canaryFor('headervalue'),
  canaryFor('bodyname'),
  canaryFor('body'),
];
const REFUSED = canaryFor('refused');
const ALL = [PATH, QUERY, HEADER_NAME, HEADER, BODY_NAME, BODY, REFUSED];
const HOUR = 3_600_000;

type Bought = {
  readonly scheduleId: string;
  readonly cancelToken: string;
  readonly links: { readonly schedule: string; readonly runs: string };
};
type Shown = {
  readonly status: string;
  readonly runs: readonly {
    readonly state: string;
    readonly reason: string | null;
    readonly links: { readonly job: string } | null;
  }[];
};

describe('the secrets of a schedule', () => {
  const realNow = Date.now;
  let world: World;
  let service: Service;
  let executed: Bought;
  let cancelled: Bought;
  let open: Bought;
  const published: (readonly [string, string])[] = [];
  let refusals = 0;

  const webhook = (kind: string) => ({
    url: `${world.target.url(`/${PATH}/${kind}`)}?${QUERY}=${QUERY}`,
    headers: { [HEADER_NAME]: HEADER, authorization: `Bearer ${HEADER}` },
    body: { [BODY_NAME]: BODY },
  });
  /** Later, if the time passes before the order arrives. */
  async function buy(kind: string, inMs: number): Promise<Bought> {
    const schedule = { type: 'once', runAt: new Date(Date.now() + inMs).toISOString() };
    const order = { webhook: webhook(kind), schedule, catchUpSeconds: 3600 };
    const { status, body } = await post<Bought>(`${service.url}/api/schedules/webhook`, order);
    if (status === 400 && inMs < HOUR) return buy(kind, 2 * inMs);
    assert.equal(status, 201, JSON.stringify(body));
    return body;
  }
  const shown = async (bought: Bought, at = bought.links.schedule) => {
    const { status, body } = await get<Shown>(at);
    return status === 200 && body;
  };
  const vault = () => readFileSync(join(world.dataDir, 'vault.db'));

  before(async () => {
    world = await makeWorld({ embedded: true });
    service = await world.start({ LOG_LEVEL: 'debug', SCHEDULES: 'on' });
    cancelled = await buy('cancelled', HOUR);
    open = await buy('open', HOUR);
    executed = await buy('executed', 1000);
  });
  after(async () => {
    Date.now = realNow;
    await world.end();
  });

  test('are sent when the run is due, and its keys are deleted then; at a cancellation those of its runs', async () => {
    const known = vault();
    for (const { scheduleId } of [cancelled, open]) assert.ok(known.includes(scheduleId));
    const over = await waitFor('the run', async () => {
      const found = await shown(executed);
      return found && found.status === 'completed' && found;
    });
    assert.equal(over.runs[0]?.state, 'executed');
    const [request] = world.target.requests;
    const sent = Buffer.concat([Buffer.from(request?.head ?? ''), request?.body ?? Buffer.alloc(0)]);
    assert.deepEqual(wordsIn(ALL, sent), [PATH, QUERY, HEADER_NAME, HEADER, BODY_NAME, BODY]);
    const response = await fetch(cancelled.links.schedule, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${cancelled.cancelToken}` },
    });
    assert.equal(response.status, 200);
    const job = (over.runs[0]?.links?.job ?? '').split('/').at(-1) ?? '?';
    await waitFor('the keys to be deleted', async () => {
      const left = vault();
      return ![executed.scheduleId, cancelled.scheduleId, job].some((name) => left.includes(name));
    });
    assert.ok(vault().includes(open.scheduleId));
  });

  test('are in no public answer, no refusal and no metric', async () => {
    const good = { webhook: webhook('refused'), schedule: { type: 'once', runAt: REFUSED } };
    for (const body of [
      good,
      { ...good, [BODY_NAME]: REFUSED },
      { ...good, schedule: { type: 'daily', timeOfDay: '09:00', timezone: REFUSED } },
      { ...good, webhook: { ...good.webhook, idempotencyKey: REFUSED } },
      { ...good, webhook: { ...good.webhook, url: `https://10.0.0.1/${REFUSED}` } },
      { ...good, webhook: { ...good.webhook, url: `http://${REFUSED}.example/` } },
    ]) {
      const refused = await post<ErrorBody>(`${service.url}/api/schedules/webhook`, body);
      assert.equal(refused.status, 400);
      refusals++;
      const words = wordsIn(ALL, JSON.stringify([refused.body, [...refused.headers]]));
      // The name of an unknown property.
      assert.deepEqual(
        words.filter((word) => word !== BODY_NAME),
        [],
      );
    }
    for (const path of [
      ...[executed, cancelled, open].map(({ links }) => new URL(links.schedule).pathname),
      '/api/proofs/recent?limit=50',
      '/api/monitoring/executions',
      '/api/actions',
      '/api/schedules/capabilities',
      '/openapi.json',
      '/health',
      '/metrics',
    ]) {
      const response = await fetch(`${service.url}${path}`);
      assert.equal(response.status, 200, path);
      published.push([path, `${JSON.stringify([...response.headers])}\n${await response.text()}`]);
    }
    for (const [path, text] of published) {
      assert.deepEqual(wordsIn(ALL, text), [], path);
      for (const { cancelToken } of [executed, cancelled, open]) assert.ok(!text.includes(cancelToken), path);
    }
    assert.deepEqual([published.length, refusals], [10, 6]);
  });

  test('are in no file, no log line and no backup; after kill -9 and a restore its runs are lost and not called', async () => {
    const out = join(world.folder, 'backup');
    const made = await runCli(['backup', '--out', out], { env: { DATA_DIR: world.dataDir } });
    assert.equal(made.code, 0, made.stdout + made.stderr);
    const ended = await service.kill();
    const files = [...filesBelow(world.dataDir), ...filesBelow(out)];
    assert.ok(files.some(([path]) => path.endsWith('vault.db')) && files.length > 20, `${files.length}`);
    for (const [path, bytes] of files) {
      assert.deepEqual(wordsIn(ALL, bytes), [], path);
      for (const { cancelToken } of [executed, cancelled, open])
        assert.ok(!bytes.includes(cancelToken), path);
    }
    assert.ok(!filesBelow(out).some(([path]) => path.includes('vault')));
    assert.deepEqual(wordsIn(ALL, ended.stdout), []);
    assert.ok(ended.stdout.includes('"msg":"request"'));

    const DATA_DIR = join(world.folder, 'restored');
    const restored = await runCli(['restore', out], { env: { DATA_DIR } });
    assert.equal(restored.code, 0, restored.stdout + restored.stderr);
    Date.now = () => realNow() + HOUR + 60_000;
    const again = await startService(
      readServiceConfig({ ...world.env, DATA_DIR, PORT: '0', LOG_LEVEL: 'error', SCHEDULES: 'on' }),
    );
    try {
      await again.opened;
      const at = `${again.url}/api/schedules/${open.scheduleId}`;
      const over = await waitFor('the run to be skipped', async () => {
        const found = await shown(open, at);
        return found && found.status === 'completed' && found;
      });
      assert.deepEqual(
        over.runs.map(({ state, reason }) => [state, reason]),
        [['skipped', 'lost']],
      );
      assert.equal(world.target.requests.length, 1);
    } finally {
      await again.stop();
    }
  });
});
