// Refused starts over EventStoreDB: each ends with code 2 and a message that names the problem, and none prints
// credentials.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createKeyFile } from '#src/adapters/signing/key-file.ts';
import { type EventStoreServer, startEventStoreServer } from '#test/support/log/eventstore-server.ts';
import { runCli } from '#test/support/process/cli.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';
import {
  type Ended,
  type Environment,
  type Service,
  spawnService,
  waitFor,
} from '#test/support/process/service.ts';
import { execute, makeWorld, type World } from '#test/support/world/service-world.ts';

/** The credentials of every connection string. */
const SECRET = 'pw7e1f';

describe('a start over EventStoreDB is refused', () => {
  let world: World;
  let eventStore: EventStoreServer;
  let env: Environment;
  /** Without a server: these wait for it, half a minute and five seconds. */
  let away: Promise<Ended>;
  let commandAway: ReturnType<typeof runCli>;

  const start = (more: Environment) => spawnService({ PORT: '0', ...world.env, ...env, ...more }).ended;

  function assertRefused({ code, stdout, stderr }: Ended, words: RegExp): void {
    assert.equal(code, 2, stdout + stderr);
    assert.doesNotMatch(stdout, /"listening"/);
    assert.match(stderr, words);
    assert.doesNotMatch(stderr, /\n\s+at /, 'words, no stack');
    assert.ok(!`${stdout}${stderr}`.includes(SECRET));
  }

  const keyFile = (name: string) => {
    const path = join(world.folder, name, 'keys.json');
    createKeyFile(path);
    return path;
  };

  before(async () => {
    world = await makeWorld();
    eventStore = await startEventStoreServer();
    env = {
      EVENTSTORE_URL: eventStore.url,
      // Unavailable: that alone does not refuse a start.
      DATABASE_URL: 'postgres://user@127.0.0.1:1/none',
      SIGNING_KEYS_FILE: keyFile('own'),
    };
    const EVENTSTORE_URL = `esdb://relay:${SECRET}@localhost:${await fixedPort()}?tls=true`;
    away = start({ EVENTSTORE_URL });
    commandAway = runCli(['payments', '--json'], { env: { ...env, EVENTSTORE_URL } });
  });
  after(async () => {
    await world?.end();
    await eventStore?.end();
  });

  test('an empty or another server than the one in use, also where the key file cannot be changed', async () => {
    await (await world.start(env)).stop();
    assert.equal(existsSync(world.dataDir), false);
    await using servers = new AsyncDisposableStack();
    const server = async () => servers.adopt(await startEventStoreServer(), (one) => one.end());
    const empty = await server();
    const other = await server();
    // A folder in the place of the lock: the key file cannot be changed, as in a folder of root's.
    const fixed = keyFile('fixed');
    const DATA_DIR = join(world.folder, 'remembers');
    mkdirSync(`${fixed}.lock`);
    const text = readFileSync(fixed, 'utf8');
    const mine = { ...env, SIGNING_KEYS_FILE: fixed, DATA_DIR, EVENTSTORE_URL: other.url };
    const call = (service: Service) => execute(service, { url: world.target.url(), idempotencyKey: 'one' });
    const first = await world.start(mine);
    assert.equal((await call(first)).status, 200);
    await first.stop();
    assert.equal(readFileSync(fixed, 'utf8'), text);
    const own = { ...env, DATA_DIR: join(world.folder, 'unused') };
    for (const [files, url, words] of [
      [own, empty.url, /^the event log of EVENTSTORE_URL is empty, and key file .*own.keys\.json shows/],
      [own, other.url, /^the event log of EVENTSTORE_URL is not the one that was in use, as key file /],
      [
        mine,
        empty.url,
        /EVENTSTORE_URL is empty, and .*remembers.event-log\.json shows.*correct EVENTSTORE_URL/,
      ],
    ] as const)
      assertRefused(await start({ ...files, EVENTSTORE_URL: url }), words);
    const listed = await runCli(['keys', 'list'], { env: { ...mine, EVENTSTORE_URL: empty.url } });
    assert.equal(listed.code, 2);
    assert.match(listed.stderr, /EVENTSTORE_URL is empty, and /);
    // Given up: the empty server takes a new log, and the next start needs no option.
    const begun = spawnService(
      { PORT: '0', ...world.env, ...mine, EVENTSTORE_URL: empty.url },
      { args: ['--begin-new-log'] },
    );
    await waitFor('it listens', () => begun.stdout().includes('"listening"'));
    begun.signal('SIGTERM');
    assert.equal((await begun.ended).code, 0);
    const second = await world.start({ ...mine, EVENTSTORE_URL: empty.url });
    assert.equal((await call(second)).body.idempotentReplay, false);
    await second.stop();
    assertRefused(await start(mine), /is not the one that was in use, as .*event-log\.json/);
  });

  test('no server for half a minute; a command waits less', async () => {
    const words =
      /the event log of EVENTSTORE_URL does not answer, or refuses this user, password or CA .*: correct it and start the service again\n$/;
    const command = await commandAway;
    assert.deepEqual([command.code, command.stdout], [2, '']);
    assert.match(command.stderr, new RegExp(`\nrelay: ${words.source}`));
    assert.ok(!command.stderr.includes(SECRET));
    assertRefused(await away, new RegExp(`^${words.source}`));
  });
});
