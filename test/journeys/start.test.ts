// The service listens before its embedded read models are open: executions run at once, reads wait or answer 503.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sleep } from '#src/lib/time.ts';
import { runtimeCommand } from '#test/support/process/runtime.ts';
import { execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

describe('start on embedded stores', () => {
  let world: World;
  before(async () => {
    world = await makeWorld({ embedded: true });
  });
  after(() => world.end());

  test('a call is executed before the read models are open; its links work, health answers 200', async () => {
    for (const start of ['on an empty directory', 'on existing data']) {
      const service = await world.start({}, 'listening');
      const { status, body } = await execute(service, { url: world.target.url() });
      assert.equal(status, 200, start);
      const health = await get<{ checks: { eventLog: { ok: boolean } } }>(`${service.url}/health`);
      assert.deepEqual([health.status, health.body.checks.eventLog.ok], [200, true], start);
      const job = await read(body.links.job ?? '');
      assert.equal(job.id, body.job.id, start);
      assert.equal((await service.stop()).code, 0, start);
    }
  });

  test('a stop while the read models open ends with code 0', async () => {
    const service = await world.start({ DATA_DIR: join(world.folder, 'stopped') }, 'listening');
    const { code, stderr } = await service.stop();
    assert.deepEqual([code, stderr], [0, '']);
  });

  test('read models that cannot be opened, as on a full disk: the service ends with code 2 and a message', async () => {
    const DATA_DIR = join(world.folder, 'full');
    mkdirSync(DATA_DIR, { mode: 0o700 });
    const [command, args] = runtimeCommand('src/main.ts');
    // In blocks of 512 or 1024 bytes: less than the files of an empty database, more than an empty event log.
    const limited = `trap '' XFSZ; ulimit -f 8000; exec "$@"`;
    const child = spawn('/bin/sh', ['-c', limited, 'sh', command, ...args], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...world.env, PORT: '0', DATA_DIR },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^the embedded read models cannot be opened: .*\n$/);
  });
});

/** As a client that obeys Retry-After. */
async function read(url: string): Promise<{ readonly id: string }> {
  for (;;) {
    const { status, headers, body } = await get<{ id: string }>(url);
    if (status === 200) return body;
    assert.equal(status, 503);
    await sleep(Number(headers.get('retry-after')) * 1000);
  }
}
