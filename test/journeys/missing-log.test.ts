// The event log that was in use is missing, empty or another one: no start and no command continues without it, until the
// operator gives it up with --begin-new-log.
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCli } from '#test/support/process/cli.ts';
import { logLines, type Service, spawnService, waitFor } from '#test/support/process/service.ts';
import { recordedIn, withLog } from '#test/support/world/service-log.ts';
import {
  type Executed,
  execute,
  get,
  makeWorld,
  post,
  type World,
} from '#test/support/world/service-world.ts';

/** Unavailable: calls are executed, and nothing else is needed here. */
const DATABASE_URL = 'postgres://user@127.0.0.1:1/none';
const LOG_FILES = ['events.db', 'events.db-wal', 'events.db-shm'];

describe('without the event log that was in use', () => {
  let world: World;
  /** A data directory as a stopped service has left it. */
  let used: string;
  /** Of another relay. */
  let other: string;
  let answered: Executed;
  let base: string;

  const call = (service: Service) =>
    execute(service, { url: world.target.url('/hook'), idempotencyKey: 'order-1' });

  before(async () => {
    world = await makeWorld({ embedded: true });
    used = join(world.folder, 'used');
    const service = await start(used);
    base = service.url;
    answered = (await call(service)).body;
    assert.equal((await service.stop()).code, 0);
    other = join(world.folder, 'other');
    await (await start(other)).stop();
    assert.ok(statSync(join(used, 'checkpoint.note')).size > 0);
  });
  after(() => world.end());

  const start = (DATA_DIR: string, more = {}) =>
    world.start({ DATA_DIR, DATABASE_URL, ...more }, 'listening');

  /** A copy of the used directory; `change` makes the state. */
  function copy(name: string, change: (folder: string) => void = () => undefined): string {
    const folder = join(world.folder, name);
    cpSync(used, folder, { recursive: true });
    change(folder);
    return folder;
  }
  const remove = (folder: string, ...names: readonly string[]) => {
    for (const name of names) rmSync(join(folder, name), { force: true });
  };
  const copyLog = (from: string, to: string) => {
    for (const name of LOG_FILES) if (existsSync(join(from, name))) cpSync(join(from, name), join(to, name));
  };
  const contentOf = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => !/-shm$|-wal$|^events\.lock|\.lock$|^read-models/.test(name))
      .map((name) => [name, statSync(join(folder, name)).size > 0]);

  async function refused(folder: string, args: readonly string[] = []): Promise<string> {
    const env = { ...world.env, PORT: '0', DATA_DIR: folder, DATABASE_URL };
    const { code, stdout, stderr } = await spawnService(env, { args }).ended;
    assert.equal(code, 2, stdout + stderr);
    assert.doesNotMatch(stdout, /"listening"/);
    assert.match(stderr, /^[^\n]+\n$/, 'one line');
    return stderr;
  }

  type State = readonly [name: string, make: (folder: string) => void | Promise<void>, says: RegExp];
  const states: readonly State[] = [
    ['missing', (folder) => remove(folder, ...LOG_FILES), /events\.db is missing, and /],
    [
      'of 0 bytes, beside its -wal',
      (folder) => {
        remove(folder, ...LOG_FILES);
        writeFileSync(join(folder, 'events.db'), '');
        writeFileSync(join(folder, 'events.db-wal'), 'what is left of the log');
      },
      /events\.db is empty, and /,
    ],
    [
      'without any event',
      async (folder) => {
        remove(folder, ...LOG_FILES);
        await withLog(folder, async () => undefined);
      },
      /events\.db is empty, and /,
    ],
    [
      'of another relay',
      (folder) => {
        remove(folder, ...LOG_FILES);
        copyLog(other, folder);
      },
      /events\.db is not the one that was in use, as /,
    ],
  ];

  for (const [name, make, says] of states) {
    test(`a log that is ${name}: the start names the files, and leaves them as they are`, async () => {
      const folder = copy(name);
      await make(folder);
      const before = contentOf(folder);
      const stderr = await refused(folder);
      assert.match(stderr, says);
      for (const file of ['events.db', 'keys.json']) assert.ok(stderr.includes(join(folder, file)), stderr);
      assert.match(stderr, /put it back from its backup .*relay serve --begin-new-log/);
      assert.deepEqual(contentOf(folder), before);
      if (name.startsWith('of 0'))
        assert.equal(readFileSync(join(folder, 'events.db-wal'), 'utf8'), 'what is left of the log');
    });
  }

  const commands: readonly (readonly string[])[] = [
    ['audit'],
    ['export', '--out', 'export.ndjson'],
    ['payments'],
    ['payments', '--balance'],
    ['payments', '--sum', 'day'],
    ['payments', 'resolve', `payment-${'0'.repeat(64)}`],
    ['payments', 'refund', 'begin', `payment-${'0'.repeat(64)}`],
    ['keys', 'list'],
    ['keys', 'rotate'],
    ['rebuild'],
    ['rebuild', '--check'],
    ['rebuild', '--prune', '--json'],
  ];

  const run = (args: readonly string[], DATA_DIR: string) => {
    const named = args.map((arg) => (arg === 'export.ndjson' ? join(DATA_DIR, arg) : arg));
    return runCli(named, { env: { DATA_DIR, X402_RPC_URL: 'http://127.0.0.1:1' } });
  };

  test('every command states it too, exits with 2, and makes nothing', async () => {
    const folder = copy('commands');
    remove(folder, ...LOG_FILES);
    const before = contentOf(folder);
    await Promise.all(
      commands.map(async (args) => {
        const { code, stderr } = await run(args, folder);
        assert.equal(code, 2, `${args}: ${stderr}`);
        assert.match(stderr, /^relay: [^\n]+events\.db is missing, and [^\n]+\n$/, String(args));
      }),
    );
    assert.deepEqual(contentOf(folder), before);
  });

  test('where nothing was in use, a command says that there is no log, and makes none', async () => {
    const folder = join(world.folder, 'nothing');
    mkdirSync(folder);
    for (const empty of [false, true]) {
      if (empty) writeFileSync(join(folder, 'events.db'), '');
      // They open the log in one way.
      const { code, stdout, stderr } = await run(['audit'], folder);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /^relay: there is no event log at [^\n]+events\.db: DATA_DIR [^\n]+\n$/);
      assert.deepEqual(contentOf(folder), empty ? [['events.db', false]] : []);
    }
  });

  test('a log whose key file is missing: no other key file is made beside it', async () => {
    const folder = copy('keyless', (at) => remove(at, 'keys.json'));
    assert.match(
      await refused(folder),
      /keys\.json is not there, and the event log was written with one: put it/,
    );
    assert.ok(!readdirSync(folder).includes('keys.json'));
  });

  test('--begin-new-log is refused beside the log in use, and on a fresh machine', async () => {
    const flag = ['--begin-new-log'];
    assert.match(
      await refused(copy('flag'), flag),
      /not needed: event log .* is the one in use; start without it/,
    );
    const none = join(world.folder, 'none');
    assert.match(await refused(none, flag), /not needed: no event log was in use here/);
    assert.match(await refused(none, ['--begin']), /unknown option --begin:/);
    assert.ok(!readdirSync(world.folder).includes('none'));
  });

  test('put back, the log answers what it has', async () => {
    const folder = copy('restored', (at) => {
      for (const name of LOG_FILES)
        if (existsSync(join(at, name))) renameSync(join(at, name), join(at, `away-${name}`));
    });
    await refused(folder);
    for (const name of readdirSync(folder).filter((file) => file.startsWith('away-')))
      renameSync(join(folder, name), join(folder, name.slice('away-'.length)));
    const service = await start(folder);
    const hits = world.target.requests.length;
    assert.equal((await call(service)).body.idempotentReplay, true);
    assert.equal(world.target.requests.length, hits);
    await service.stop();
  });

  test('--begin-new-log: what it means is printed, a log with a name of its own begins, old receipts verify', async () => {
    const folder = copy('begun', (at) => {
      remove(at, ...LOG_FILES);
      writeFileSync(join(at, 'events.db-wal'), 'what is left of the log');
    });
    const note = readFileSync(join(folder, 'checkpoint.note'), 'utf8');
    const env = { ...world.env, PORT: '0', DATA_DIR: folder, DATABASE_URL, PUBLIC_BASE_URL: base };
    // Killed right after the old log was given up: the next start needs no option, and knows what it succeeds.
    const begun = spawnService(env, { args: ['--begin-new-log'] });
    await waitFor('the old log is given up', () => begun.stdout().includes('is given up'), { everyMs: 1 });
    begun.signal('SIGKILL');
    const { stderr } = await begun.ended;
    for (const words of [
      /idempotency keys and payments are unknown/,
      /cannot be resumed/,
      /receipts verify as before/,
    ])
      assert.match(stderr, words);
    const aside = readdirSync(folder).filter((name) => /^checkpoint\.note\.|^events\.db-wal\./.test(name));
    assert.equal(aside.length, 2);
    const asideNote = aside.find((name) => name.startsWith('checkpoint')) ?? '';
    assert.equal(readFileSync(join(folder, asideNote), 'utf8'), note);

    let service = await start(folder, { PUBLIC_BASE_URL: base });
    const hits = world.target.requests.length;
    const { body } = await call(service);
    assert.equal(body.idempotentReplay, false);
    assert.equal(world.target.requests.length, hits + 1);
    const origin = String(body.checkpoint).split('\n')[0];
    assert.match(origin ?? '', new RegExp(`^${new URL(base).host}/receipts/[0-9a-f]{8}$`));
    writeFileSync(join(world.folder, 'old.jws'), answered.receipt.jws);
    writeFileSync(
      join(world.folder, 'jwks.json'),
      JSON.stringify((await get(`${service.url}/.well-known/jwks.json`)).body),
    );
    const verified = await runCli([
      'verify',
      join(world.folder, 'old.jws'),
      '--keys',
      join(world.folder, 'jwks.json'),
    ]);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    assert.equal((await service.stop()).code, 0);
    assert.match(await refused(folder, ['--begin-new-log']), /is the one in use/);

    const env2 = { DATA_DIR: folder };
    const clean = await runCli(['audit', '--json'], { env: env2 });
    assert.equal(clean.code, 0, clean.stdout + clean.stderr);
    const kept = await runCli(['audit', '--checkpoint', join(folder, asideNote)], { env: env2 });
    assert.equal(kept.code, 1, kept.stdout + kept.stderr);
    assert.match(kept.stdout, /kept_checkpoint_origin_mismatch/);
    service = await start(folder, { PUBLIC_BASE_URL: base });
    assert.equal((await call(service)).body.idempotentReplay, true);
    await service.stop();
    assert.deepEqual(
      logLines(service.stdout()).filter(({ level }) => level === 'error'),
      [],
    );
    assert.equal((await recordedIn(folder))[0]?.type, 'SigningKeyActivated');
  });

  test('a restored log of before the loss is refused after that, or continued with --begin-new-log', async () => {
    const folder = join(world.folder, 'begun');
    remove(folder, ...LOG_FILES);
    copyLog(used, folder);
    assert.match(await refused(folder), /is not the one that was in use, as key file /);
    const env = { ...world.env, PORT: '0', DATA_DIR: folder, DATABASE_URL };
    const service = spawnService(env, { args: ['--begin-new-log'] });
    const line = await waitFor('it listens', () =>
      logLines(service.stdout()).find(({ msg }) => msg === 'listening'),
    );
    const again = await post<Executed>(`http://${line.listen}/api/execute/webhook`, {
      url: world.target.url('/hook'),
      idempotencyKey: 'order-1',
    });
    assert.equal(again.body.idempotentReplay, true);
    assert.equal(again.body.job.id, answered.job.id);
    service.signal('SIGTERM');
    assert.equal((await service.ended).code, 0);
  });
});
