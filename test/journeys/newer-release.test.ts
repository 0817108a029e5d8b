// Two releases on one log, of which one writes a version more: the other answers 503 to what it cannot read, its rows stop
// there, and it spoils nothing for the newer one. Takes as long as the shortest lease, and 30 s.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { runCli } from '#test/support/process/cli.ts';
import {
  type Ended,
  type Environment,
  type Service,
  spawnService,
  startService,
  waitFor,
} from '#test/support/process/service.ts';
import { type Answered, readLinks, replays } from '#test/support/world/release-load.ts';
import {
  type ErrorBody,
  type Executed,
  execute,
  get,
  makeWorld,
  type World,
} from '#test/support/world/service-world.ts';

const NEWER = { script: 'test/support/process/newer-release.ts' };
const WRITTEN = 'JobStarted version 3';

type Check = { readonly ok: boolean; readonly reason?: string; readonly message?: string };
type Health = { readonly checks: Readonly<Record<string, Check | null>> };

describe(
  'a release that writes one version more, on one event log and one PostgreSQL',
  needsPostgres(),
  () => {
    let server: PostgresServer;
    let world: World;
    let env: Environment;
    let ours: Service;
    let newer: Service;
    const started: Service[] = [];
    const earlier: Answered[] = [];
    let made: Answered;
    let later: Answered;

    async function start(release = {}): Promise<Service> {
      const service = await startService(env, 'listening', release);
      started.push(service);
      await waitFor('it is live', async () => (await get(`${service.url}/health/live`)).status === 200);
      return service;
    }
    async function called(service: Service, path: string): Promise<Answered> {
      const request = { url: world.target.url(path), idempotencyKey: path };
      const { status, body } = await execute(service, request);
      assert.deepEqual([status, body.idempotentReplay], [200, false]);
      return { request, body };
    }
    const jobAt = (service: Service, { links }: Pick<Executed, 'links'>) =>
      get<Executed['job'] & ErrorBody>(`${service.url}${new URL(links.job ?? '').pathname}`);
    /** `relay ARGS` of the newer release. */
    const newerCli = (...args: readonly string[]): Promise<Ended> =>
      spawnService(env, { ...NEWER, args }).ended;

    before(async () => {
      server = await postgresServer();
      world = await makeWorld({ embedded: true });
      env = { ...world.env, DATABASE_URL: await server.newDatabase() };
      ours = await start();
      earlier.push(await called(ours, '/before'));
      await waitFor(
        'its row',
        async () => (await jobAt(ours, earlier[0]?.body ?? assert.fail())).status === 200,
      );
      newer = await start(NEWER);
      made = await called(newer, '/newer');
      later = await called(ours, '/after');
    });
    after(async () => {
      for (const service of started) await service.kill();
      await world.end();
      await server.remove();
    });

    test('what needs the event is answered 503, with the time to repeat it; what does not is answered as ever', async () => {
      const sent = world.target.requests.length;
      const again = await execute(ours, made.request);
      assert.deepEqual([again.status, again.body.error.code], [503, 'event_log_unavailable']);
      assert.equal(again.headers.get('retry-after'), '60');
      assert.match(again.body.error.message, new RegExp(`^A newer release has written ${WRITTEN} here`));
      for (const one of [made, later]) {
        const { status, headers, body } = await jobAt(ours, one.body);
        assert.deepEqual([status, body.error.code], [503, 'read_models_unavailable']);
        assert.ok(Number(headers.get('retry-after')) > 0);
      }
      for (const one of [...earlier, later]) await replays(ours, one);
      for (const one of earlier) await readLinks(ours, one.body);
      assert.equal(world.target.requests.length, sent);
    });

    test('health and log name the event, and state no damage', async () => {
      const wrongAt = async (service: Service) =>
        Object.entries((await get<Health>(`${service.url}/health`)).body.checks).filter(
          ([, one]) => one?.ok === false,
        );
      const [[part, found] = assert.fail(), ...others] = await wrongAt(ours);
      assert.deepEqual([part, found?.reason, others], ['projections', 'newer_release', []]);
      assert.match(
        found?.message ?? '',
        new RegExp(`before ${WRITTEN} at position \\d+, which a newer release`),
      );
      assert.match(ours.stdout(), /the read models stop before an event of a newer release/);
      assert.doesNotMatch(ours.stdout(), /damage/);
      assert.deepEqual(await wrongAt(newer), []);
    });

    test('the newer release finds its rows equal and its record clean; this one says that it is another’s', async () => {
      for (const args of [['rebuild', '--check'], ['audit']]) {
        const { code, stdout, stderr } = await newerCli(...args);
        assert.equal(code, 0, `${stdout}${stderr}`);
      }
      const audit = await runCli(['audit', '--json'], { env });
      const lines = audit.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.equal(audit.code, 2, audit.stdout);
      assert.deepEqual(
        lines.flatMap(({ finding }) => finding?.kind ?? []),
        ['event_of_newer_release'],
      );
      const rebuild = await runCli(['rebuild'], { env });
      assert.deepEqual([rebuild.code, rebuild.stdout], [2, '']);
      assert.match(rebuild.stderr, new RegExp(`written by a newer release: ${WRITTEN}; start that release`));
    });

    test('where the newer release takes its place, everything is answered', async () => {
      const { code, stderr } = await ours.stop();
      assert.deepEqual([code, stderr], [0, '']);
      const successor = await start(NEWER);
      for (const one of [...earlier, made, later]) {
        await waitFor('its row', async () => (await jobAt(successor, one.body)).status === 200);
        await replays(successor, one);
        await readLinks(successor, one.body);
      }
    });
  },
);
