// A damaged vault.db holds the runs of schedules, and nothing else: the service starts, calls are executed, and health, log and
// doctor name the file and what to do.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sentenceOf } from '#src/domain/monitoring/conditions.ts';
import { runCli } from '#test/support/process/cli.ts';
import { logLines, waitFor } from '#test/support/process/service.ts';
import {
  type ErrorBody,
  execute,
  get,
  makeWorld,
  post,
  type World,
} from '#test/support/world/service-world.ts';

type Health = {
  readonly ok: boolean;
  readonly checks: {
    readonly schedules: { readonly ok: boolean; readonly reason?: string; readonly message?: string };
  };
};
type Findings = { readonly findings: readonly { part: string; state: string; message: string }[] };

const REMEDY = /vault\.db: put it back from its backup, or move it away/;

let world: World;
before(async () => {
  world = await makeWorld({ embedded: true });
});
after(() => world.end());

const ON = { SCHEDULES: 'on' };
const order = () => ({
  webhook: { url: world.target.url('/run') },
  schedule: { type: 'once', runAt: new Date(Date.now() + 3_600_000).toISOString() },
});

async function doctor() {
  const args = ['doctor', '--json', '--target', world.target.url('/page')];
  const { stdout } = await runCli(args, { env: { ...world.env, ...ON, PORT: '0' } });
  const { findings }: Findings = JSON.parse(stdout);
  const vault = findings.find(({ part }) => part === 'schedules');
  return { vault, problems: findings.filter(({ state }) => state === 'problem').map(({ part }) => part) };
}

test('a damaged vault.db holds schedules only', async () => {
  const file = join(world.dataDir, 'vault.db');
  assert.equal((await doctor()).vault?.state, 'ok', 'before the first start');
  const whole = await world.start(ON);
  assert.equal((await post(`${whole.url}/api/schedules/webhook`, order())).status, 201);
  assert.equal((await doctor()).vault?.state, 'ok', 'beside the service');
  await whole.stop();
  assert.equal((await doctor()).vault?.state, 'ok');
  const content = readFileSync(file);
  writeFileSync(file, 'this was a database '.repeat(1000));

  const service = await world.start(ON);
  const message = sentenceOf('schedules', 'vault_damaged');
  await waitFor('health names the vault', async () => {
    const { status, body } = await get<Health>(`${service.url}/health`);
    assert.equal(status, 200);
    if (body.checks.schedules.ok) return false;
    assert.deepEqual(body.checks.schedules, { ok: false, reason: 'vault_damaged', message });
    assert.equal(body.ok, false);
    return true;
  });
  const called = await execute(service, { url: world.target.url('/call') });
  assert.equal(called.status, 200);
  const { status, body } = await post<ErrorBody>(`${service.url}/api/schedules/webhook`, order());
  assert.deepEqual([status, body.error.code], [503, 'schedules_unavailable']);
  const logged = logLines(service.stdout()).filter((line) => REMEDY.test(JSON.stringify(line)));
  assert.equal(logged.length, 1);
  const { vault, problems } = await doctor();
  assert.deepEqual([problems, vault?.state], [['schedules'], 'problem']);
  assert.match(vault?.message ?? '', REMEDY);
  await service.stop();

  writeFileSync(file, content);
  const again = await world.start(ON);
  assert.equal((await get<Health>(`${again.url}/health`)).body.ok, true);
  assert.equal((await post(`${again.url}/api/schedules/webhook`, order())).status, 201);
  await again.stop();
});
