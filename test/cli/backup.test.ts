// relay backup and relay restore, with the real service: a copy while calls are made, and what a restore refuses.
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readKeyFile } from '#src/adapters/signing/key-file.ts';
import type { Manifest } from '#src/domain/backup/manifest.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { signedCheckpoint } from '#src/usecases/transparency/checkpoints.ts';
import { runCli } from '#test/support/process/cli.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import type { Service } from '#test/support/process/service.ts';
import { type Executed, execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

/** Unavailable: calls are executed, and nothing else is needed here. */
const DATABASE_URL = 'postgres://user@127.0.0.1:1/none';

describe('backup and restore', () => {
  let world: World;
  let service: Service;
  let first: Executed;
  let out: string;
  let made: Manifest;

  const call = (at: Service, idempotencyKey: string) =>
    execute(at, { url: world.target.url('/hook'), idempotencyKey });
  const start = (DATA_DIR: string) => world.start({ DATA_DIR, DATABASE_URL }, 'listening');
  const restore = (DATA_DIR: string, ...args: string[]) =>
    runCli(['restore', out, ...args], { env: { DATA_DIR } });
  /** A copy of the data directory after the service ended: it has more events than the backup. */
  let later: string;
  const copyOfLater = (name: string): string => {
    const folder = join(world.folder, name);
    cpSync(later, folder, { recursive: true });
    return folder;
  };

  before(async () => {
    world = await makeWorld({ embedded: true });
    out = join(world.folder, 'backup');
    // With read models: at its end it signs a checkpoint over all of its receipts.
    service = await world.start();
    first = (await call(service, 'first')).body;
    let calls = 0;
    let isOver = false;
    const caller = async (name: number) => {
      for (; !isOver; calls++) assert.equal((await call(service, `${name}-${calls}`)).status, 200);
    };
    const callers = [1, 2, 3].map(caller);
    const { code, stdout, stderr } = await runCli(['backup', '--out', out, '--json'], {
      env: { DATA_DIR: world.dataDir },
    });
    isOver = true;
    await Promise.all(callers);
    assert.equal(code, 0, stdout + stderr);
    made = JSON.parse(stdout);
    await call(service, 'last');
    await service.stop();
    later = join(world.folder, 'later');
    cpSync(world.dataDir, later, { recursive: true });
  });
  after(() => world.end());

  test('a backup while calls are made: the record, and the keys apart, for the owner alone', () => {
    assert.deepEqual(readdirSync(out).sort(), ['backup.json', 'keys', 'log']);
    assert.deepEqual(readdirSync(join(out, 'log')).sort(), ['checkpoint.note', 'events.db']);
    for (const file of ['keys/keys.json', 'log/events.db', 'backup.json'])
      assert.equal(statSync(join(out, file)).mode & 0o777, 0o600, file);
    for (const folder of ['.', 'keys', 'log']) assert.equal(statSync(join(out, folder)).mode & 0o777, 0o700);
    assert.ok(made.log.events > 5 && made.log.treeSize >= 1 && made.log.findings === 0);
    assert.deepEqual(Object.keys(made.files).sort(), [
      'keys/keys.json',
      'log/checkpoint.note',
      'log/events.db',
    ]);
  });

  test('restored where nothing is: the service answers with what it has answered', async () => {
    const folder = join(world.folder, 'fresh');
    const { code, stdout, stderr } = await restore(folder);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /audit +no problem/);
    const restored = await start(folder);
    const repeat = await call(restored, 'first');
    assert.deepEqual([repeat.status, repeat.body.idempotentReplay], [200, true]);
    assert.equal(repeat.body.job.id, first.job.id);
    assert.equal((await call(restored, 'new')).body.idempotentReplay, false);
    await restored.stop();
    assert.equal((await runCli(['audit'], { env: { DATA_DIR: folder } })).code, 0);
  });

  test('over a log that has more: refused, and nothing is changed; with --older-log it is kept, and no call is taken', async () => {
    const folder = copyOfLater('more');
    const before = readFileSync(join(folder, 'events.db'));
    const refused = await restore(folder);
    assert.equal(refused.code, 2);
    assert.match(
      refused.stderr,
      /older than what is in place: the event log in place has \d+ events.*--older-log/,
    );
    assert.deepEqual(readFileSync(join(folder, 'events.db')), before);
    const { code, stdout, stderr } = await restore(folder, '--older-log');
    assert.equal(code, 0, stderr);
    const [, aside = ''] = /kept +(\S+events\.db\.\S+)/.exec(stdout) ?? [];
    assert.deepEqual(readFileSync(aside), before);
    const restored = await start(folder);
    const answer = await call(restored, 'last');
    assert.deepEqual([answer.status, answer.body.error?.code], [503, 'event_log_unavailable']);
    assert.equal((await call(restored, 'first')).body.idempotentReplay, true);
    const health = await get<{ checks: { transparencyLog: { reason: string } } }>(`${restored.url}/health`);
    assert.equal(health.body.checks.transparencyLog.reason, 'checkpoint_forgotten');
    await restored.stop();
  });

  test('the log is lost, and the keys were rotated since: refused without --older-log', async () => {
    const folder = copyOfLater('rotated');
    const env = { DATA_DIR: folder };
    assert.equal((await runCli(['keys', 'rotate'], { env })).code, 0);
    for (const tail of ['events.db', 'events.db-wal', 'events.db-shm', 'checkpoint.note'])
      rmSync(join(folder, tail), { force: true });
    const keyFile = join(folder, 'keys.json');
    const keys = readFileSync(keyFile);
    const { code, stderr } = await restore(folder);
    assert.equal(code, 2);
    assert.match(stderr, /the key file in place has keys that the event log of the backup lacks/);
    assert.ok(!existsSync(join(folder, 'events.db')));
    const restored = await restore(folder, '--older-log');
    assert.equal(restored.code, 0, restored.stderr);
    const [, aside = ''] = /kept +(\S+keys\.json\.\S+)/.exec(restored.stdout) ?? [];
    assert.deepEqual(readFileSync(aside), keys, 'the newer file is kept beside the older one');
    assert.deepEqual(
      [keyFile, aside].map((file) => statSync(file).mode & 0o777),
      [0o600, 0o600],
    );

    const it = await start(folder);
    const { status, body } = await call(it, 'after the restore');
    assert.equal(status, 200);
    const jwks = await get<object>(`${it.url}/.well-known/jwks.json`);
    await it.stop();
    const receipt = join(folder, 'receipt.jws');
    writeFileSync(receipt, body.receipt.jws);
    writeFileSync(join(folder, 'jwks.json'), JSON.stringify(jwks.body));
    const verified = await runCli(['verify', receipt, '--keys', join(folder, 'jwks.json')]);
    assert.equal(verified.code, 0, verified.stdout);

    // The key of the lost rotation is announced now.
    const lost = readKeyFile(aside).keys.find(
      ({ purpose, status }) => purpose === 'receipt' && status === 'active',
    );
    const { stdout } = await runCli(['keys', 'rotate', '--json'], { env });
    assert.equal(JSON.parse(stdout).keyId, lost?.keyId);
    const again = await start(folder);
    assert.equal((await call(again, 'after the rotation')).status, 200);
    await again.stop();
  });

  test('the log is lost, and a rotated checkpoint key signed the newer note: no call is taken', async () => {
    const folder = copyOfLater('checkpoint-rotated');
    const env = { DATA_DIR: folder };
    assert.equal((await runCli(['keys', 'rotate', '--purpose', 'checkpoint'], { env })).code, 0);
    const notePath = join(folder, 'checkpoint.note');
    const head = parseCheckpoint(readFileSync(notePath, 'utf8'));
    const fresh = readKeyFile(join(folder, 'keys.json')).keys.find(({ purpose }) => purpose === 'checkpoint');
    assert.ok(head !== null && fresh !== undefined);
    writeFileSync(notePath, (await signedCheckpoint(head, fresh, 0)).data.note);
    for (const tail of ['', '-wal', '-shm']) rmSync(join(folder, `events.db${tail}`), { force: true });
    assert.equal((await restore(folder, '--older-log')).code, 0);
    const it = await start(folder);
    const { status, body } = await call(it, 'last');
    assert.deepEqual([status, body.error?.code], [503, 'event_log_unavailable']);
    await it.stop();
  });

  test('a damaged log is replaced, if its checkpoint is in the backup', async () => {
    const folder = copyOfLater('damaged');
    writeFileSync(join(folder, 'events.db'), 'no database');
    cpSync(join(out, 'log/checkpoint.note'), join(folder, 'checkpoint.note'));
    const { code, stderr } = await restore(folder);
    assert.equal(code, 0, stderr);
  });

  test('not over another log, nor while a service runs', async () => {
    const folder = join(world.folder, 'other');
    const other = await start(folder);
    const busy = await restore(folder, '--older-log');
    assert.equal(busy.code, 2);
    assert.match(busy.stderr, /stop all of them, then restore/);
    await other.stop();
    const { code, stderr } = await restore(folder, '--older-log');
    assert.equal(code, 2);
    assert.match(stderr, /does not belong there: the event log in place is another one/);
  });

  test('a backup that was changed, cut or is none is refused', async () => {
    const folder = join(world.folder, 'unchanged');
    const changed = join(world.folder, 'changed');
    for (const [change, reason] of [
      [() => truncateSync(join(changed, 'log/events.db'), 8192), /events\.db is not as it was written/],
      [() => rmSync(join(changed, 'keys/keys.json')), /keys\.json is missing/],
      [() => rmSync(join(changed, 'backup.json')), /is no backup/],
    ] as const) {
      rmSync(changed, { recursive: true, force: true });
      cpSync(out, changed, { recursive: true });
      change();
      const { code, stderr } = await runCli(['restore', changed], { env: { DATA_DIR: folder } });
      assert.equal(code, 2);
      assert.match(stderr, reason);
    }
    assert.ok(!existsSync(folder));
  });

  test('--into adds one by its time, removes unfinished ones, and keeps so many', async () => {
    const folder = join(world.folder, 'backups');
    for (const name of [
      '2020-01-01T00-00-00Z',
      '2021-01-01T00-00-00Z',
      '2022-01-01T00-00-00Z.77.partial',
      'notes',
    ])
      mkdirSync(join(folder, name), { recursive: true });
    const env = { DATA_DIR: later };
    const { code, stderr } = await runCli(['backup', '--into', folder, '--keep', '2'], { env });
    assert.equal(code, 0, stderr);
    const names = readdirSync(folder)
      .filter((name) => !name.endsWith('.lock'))
      .sort();
    assert.equal(names.length, 3);
    assert.deepEqual([names[0], names[2]], ['2021-01-01T00-00-00Z', 'notes']);
    assert.ok(existsSync(join(folder, names[1] ?? '', 'backup.json')));
  });

  test('killed at any moment, it leaves a whole backup under its name, or none', async () => {
    let [whole, none] = [0, 0];
    // A machine that stops this process for a while lets some backups end: until one has not.
    for (let n = 0; n < 8 || (none === 0 && n < 80); n++) {
      const folder = join(world.folder, `killed-${n}`);
      const cli = startCli(['backup', '--out', folder], { env: { DATA_DIR: later } });
      const ended = cli.ended.then(() => true);
      // From its first file on, at moments of their own.
      while (!readdirSync(world.folder).some((name) => name.startsWith(`killed-${n}`)))
        if (await Promise.race([ended, sleep(1, false)])) break;
      await sleep((n % 8) * 7);
      cli.signal('SIGKILL');
      await cli.ended;
      if (!existsSync(folder)) {
        none++;
        continue;
      }
      whole++;
      const env = { DATA_DIR: join(world.folder, `of-killed-${n}`) };
      assert.equal((await runCli(['restore', folder], { env })).code, 0);
    }
    assert.ok(none > 0, `${whole} whole, ${none} none`);
  });

  test('with EventStoreDB, without a log, without a place: cannot run', async () => {
    const env = { DATA_DIR: join(world.folder, 'nothing') };
    const cannot = async (args: readonly string[], more = {}) => {
      const { code, stderr } = await runCli(args, { env: { ...env, ...more } });
      assert.equal(code, 2);
      return stderr;
    };
    assert.match(await cannot(['backup']), /--out or --into/);
    assert.match(await cannot(['backup', '--out', join(world.folder, 'x')]), /no event log/);
    const shared = {
      EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false',
      SIGNING_KEYS_FILE: join(later, 'keys.json'),
    };
    assert.match(await cannot(['backup', '--out', join(world.folder, 'x')], shared), /EVENTSTORE_URL is set/);
    assert.match(await cannot(['restore', out], shared), /EVENTSTORE_URL is set/);
    assert.match(await cannot(['backup', '--out', out], { DATA_DIR: later }), /exists: name a new folder/);
  });
});
