// The disk of the event log fills, or becomes read-only, while the service runs: seen by health, metrics, alert rules, the log
// and callers; the process ends in it, and recovers when there is room again.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LONG } from '#test/support/given/property-runs.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import {
  type FailingDisk,
  failingDisk,
  fillDisk,
  mountMemory,
  needsFailingDisk,
  needsMounts,
  unmount,
} from '#test/support/process/other-user.ts';
import { logLines } from '#test/support/process/service.ts';
import { type HealthState, passThrough, type Seen, type Watched } from '#test/support/world/health-states.ts';
import { execute, makeWorld, type World } from '#test/support/world/service-world.ts';

const postgres = needsPostgres();
const mounts = needsMounts();
const failing = needsFailingDisk();
const skipFull = { skip: postgres.skip || mounts.skip };
const skipFailing = { skip: postgres.skip || failing.skip };

const NOT_WRITABLE: Seen = {
  status: 503,
  part: 'eventLog',
  reason: 'not_writable',
  message: /accepts no events: no call is executed/,
  alert: 'RelayEventLogDown',
  logged: {
    level: 'error',
    msg: /^The event log accepts no events/,
    cause: /disk is full|disk I\/O error|readonly/,
  },
  call: [503, 'event_log_unavailable', /nothing was sent/],
};

const root = mkdtempSync(join(tmpdir(), 'relay-disks-'));
let world: World;
let database: PostgresServer;
let calls = 0;

before(async () => {
  if (skipFull.skip && skipFailing.skip) return;
  database = await postgresServer();
  world = await makeWorld({ embedded: true });
});
after(async () => {
  await world?.end();
  await database?.remove();
  rmSync(root, { recursive: true, force: true });
});

async function watched(folder: string): Promise<Watched> {
  const env = { DATA_DIR: join(folder, 'data'), DATABASE_URL: await database.newDatabase() };
  const start = () => world.start(env, 'listening');
  const call: Watched['call'] = (service) =>
    execute(service, { url: world.target.url('/disk'), idempotencyKey: `disk-${++calls}` });
  return { service: await start(), start, call };
}

/** The cause is logged once, whatever is called meanwhile. */
function assertLoggedOnce({ service }: Watched, from: number): void {
  const lines = logLines(service.stdout().slice(from)).filter(({ level }) => level === 'error');
  assert.deepEqual(
    lines.map(({ msg, condition }) => [msg, condition]),
    [['The event log accepts no events: no call is executed.', 'not_writable']],
  );
}

test('the disk of the event log is full', skipFull, async () => {
  const disk = join(root, 'full');
  mountMemory(disk, '6m');
  const filling = join(disk, 'filling');
  try {
    const it = await watched(disk);
    const state: HealthState = {
      name: 'full',
      made: 'running',
      make: () => fillDisk(filling),
      seen: NOT_WRITABLE,
      repaired: 'running',
      repair: () => rmSync(filling),
    };
    await passThrough(it, state);
    const from = it.service.stdout().length;
    fillDisk(filling);
    for (let n = 0; n < 3; n++) assert.equal((await it.call(it.service)).status, 503);
    assertLoggedOnce(it, from);
    rmSync(filling);
    assert.equal((await it.service.stop()).code, 0);
  } finally {
    unmount(disk);
  }
});

if (LONG)
  test('the disk of the event log becomes read-only after an error', skipFailing, async () => {
    let disk: FailingDisk | null = null;
    try {
      const made = failingDisk(root);
      disk = made;
      const it = await watched(made.folder);
      await passThrough(it, {
        name: 'read-only',
        made: 'running',
        make: () => made.fail(),
        seen: NOT_WRITABLE,
        repaired: 'stopped',
        repair: () => made.repair(),
      });
      assert.equal((await it.service.stop()).code, 0);
    } finally {
      disk?.end();
    }
  });
