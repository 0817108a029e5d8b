// Upgrade to another release and rollback, as DEPLOYING.md describes them, without a failed call or read.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import postgres from 'postgres';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { runCli } from '#test/support/process/cli.ts';
import {
  type Ended,
  type Environment,
  type Service,
  type Spawning,
  spawnService,
  startService,
  waitFor,
} from '#test/support/process/service.ts';
import {
  type Answered,
  type ReleaseLoad,
  type Rotation,
  readLinks,
  replays,
  rotation,
  startReleaseLoad,
} from '#test/support/world/release-load.ts';
import {
  type ErrorBody,
  type Executed,
  execute,
  get,
  makeWorld,
  type World,
} from '#test/support/world/service-world.ts';

const needs = needsPostgres();
const A: Spawning = { script: 'src/main.ts' };
const B: Spawning = { script: 'test/support/process/other-release.ts' };
const ROUNDS = 6;

/** `relay ARGS` of the other release. */
const otherCli = (args: readonly string[], env: Environment): Promise<Ended> =>
  spawnService(env, { ...B, args }).ended;

const succeeded = ({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }) =>
  assert.equal(code, 0, `${stdout}${stderr}`);

describe('two releases on one event log and one PostgreSQL, under load', needs, () => {
  let server: PostgresServer;
  let world: World;
  let env: Environment;
  let client: postgres.Sql;
  let serving: Rotation;
  let load: ReleaseLoad;
  const started: Service[] = [];

  async function start(release: Spawning): Promise<void> {
    const service = await startService(env, 'listening', release);
    started.push(service);
    await serving.add(service);
  }

  /** One process at a time: out of rotation, SIGTERM when its requests are answered, then one of the other release. */
  async function rollTo(release: Spawning): Promise<void> {
    for (const old of [...serving.members]) {
      await serving.remove(old);
      const { code, stderr } = await old.stop();
      assert.deepEqual([code, stderr], [0, '']);
      await start(release);
      await load.rounds(ROUNDS);
      assert.deepEqual(load.failures, []);
    }
  }

  const generations = () => client`select schema from read_model_generations order by schema`;

  before(async () => {
    server = await postgresServer();
    world = await makeWorld({ embedded: true });
    env = { ...world.env, DATABASE_URL: await server.newDatabase() };
    client = postgres(env.DATABASE_URL ?? '', { max: 1, onnotice: () => undefined });
    serving = rotation();
    await start(A);
    await start(A);
    load = startReleaseLoad(world.target, serving);
    await load.rounds(ROUNDS);
  });
  after(async () => {
    await load.stop();
    for (const service of started) await service.kill();
    await client.end({ timeout: 5 });
    await world.end();
    await server.remove();
  });

  test('the new release builds its read models while the old one serves', async () => {
    const before = await generations();
    succeeded(await otherCli(['rebuild'], env));
    assert.equal((await generations()).length, before.length + 1);
    await load.rounds(ROUNDS);
    assert.deepEqual(load.failures, []);
  });

  test('upgrade, one process at a time: no call and no read fails', async () => {
    await rollTo(B);
    succeeded(await otherCli(['rebuild', '--check'], env));
  });

  test('rollback, one process at a time: no call and no read fails', async () => {
    await rollTo(A);
    await load.stop();
    assert.deepEqual(load.failures, []);
  });

  test('each call was sent once and is readable at every process; the record is clean', async () => {
    assert.ok(load.answered.length >= 6 * ROUNDS);
    const sent = world.target.requests.map(({ path }) => path).sort();
    assert.deepEqual(sent, load.answered.map(({ request }) => String(request.body)).sort());
    for (const service of serving.members)
      for (const { body } of load.answered) await readLinks(service, body);
    succeeded(await runCli(['rebuild', '--check'], { env }));
    succeeded(await runCli(['audit'], { env }));
  });

  test('10 minutes after the last process of the other release ended, its read models are dropped', async () => {
    const before = await generations();
    await client`update read_model_generations set used_at = used_at - interval '11 minutes'`;
    const pruned = await runCli(['rebuild', '--prune', '--json'], { env });
    succeeded(pruned);
    const { dropped } = JSON.parse(pruned.stdout);
    const left = await generations();
    assert.deepEqual([before.length, dropped.length, left.length], [2, 1, 1]);
    for (const service of serving.members)
      for (const { body } of load.answered.slice(-3)) await readLinks(service, body);
  });
});

describe('two releases on one embedded directory, one after the other', () => {
  let world: World;
  let service: Service | null = null;
  const answered: Answered[] = [];

  before(async () => {
    world = await makeWorld({ embedded: true });
  });
  after(async () => {
    await service?.kill();
    await world.end();
  });

  /** The service listens before its read models are open: until then a read may answer 503, and nothing else. */
  const untilRead = (now: Service, { links }: Executed) =>
    waitFor('a read', async () => {
      const { status, body } = await get<ErrorBody>(`${now.url}${new URL(links.job ?? '').pathname}`);
      if (status !== 200) assert.deepEqual([status, body.error.code], [503, 'read_models_unavailable']);
      return status === 200;
    });

  for (const [n, { name, release }] of [
    { name: 'the first release', release: A },
    { name: 'upgraded', release: B },
    { name: 'rolled back', release: A },
  ].entries())
    test(`${name}: calls are executed, earlier ones are as they were`, async () => {
      const now = await startService(world.env, 'listening', release);
      service = now;
      for (const { body } of answered) {
        await untilRead(now, body);
        await readLinks(now, body);
      }
      for (const earlier of answered) await replays(now, earlier);
      for (let call = 0; call < 4; call++) {
        const path = `/embedded/${n}/${call}`;
        const request = { url: world.target.url(path), idempotencyKey: path };
        const { status, body } = await execute(now, request);
        assert.deepEqual([status, body.idempotentReplay], [200, false]);
        answered.push({ request, body });
        await untilRead(now, body);
        await readLinks(now, body);
      }
      const { code, stderr } = await now.stop();
      assert.deepEqual([code, stderr], [0, '']);
      assert.equal(world.target.requests.length, answered.length);
    });

  test('the record is clean', async () => {
    succeeded(await runCli(['rebuild', '--check'], { env: world.env }));
    succeeded(await runCli(['audit'], { env: world.env }));
  });
});
