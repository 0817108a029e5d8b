// The binary of `bun run build:binary`, in a folder without the project: what `relay` does from the source, it does there.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import { BINARY, rootPath } from '#test/support/process/runtime.ts';
import type { Service } from '#test/support/process/service.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

const folder = testFolder('binary');
const cwd = join(folder, 'empty');
const binary = join(folder, 'relay');
/** Also where this file runs under another runtime. */
const BUN = `${rootPath}/node_modules/bun/bin/bun.exe`;
const COMMIT = '0123456789abcdef0123456789abcdef01234567';

const relay = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  startCli(args, { cwd, env }).ended;

before(() => {
  mkdirSync(cwd);
  const args = ['deploy/build-binary.ts', '--out', binary, '--commit', COMMIT];
  const built = spawnSync(BUN, args, { cwd: rootPath, encoding: 'utf8' });
  assert.equal(built.status, 0, built.stdout + built.stderr);
  process.env[BINARY] = binary;
});
after(() => {
  delete process.env[BINARY];
});

describe('the binary', () => {
  let world: World;
  let service: Service;
  before(async () => {
    world = await makeWorld({ embedded: true });
    service = await world.start();
  });
  after(() => world.end());

  test('states the version and the commit', async () => {
    assert.deepEqual(await relay(['--version']), {
      code: 0,
      stdout: `0.1.0 (commit ${COMMIT})\n`,
      stderr: '',
    });
  });

  test('relay demo --once: everything is as expected', async () => {
    const { code, stdout, stderr } = await relay(['demo', '--once']);
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /Everything is as expected\.\n$/);
  });

  test('relay demo --paid: states what it lacks', async () => {
    const { code, stderr } = await relay(['demo', '--paid', '--once']);
    assert.equal(code, 2);
    assert.match(stderr, /^relay: the paid demo needs a local chain[^\n]+\n$/);
  });

  test('relay serve executes a call, and serves the files that ship with it', async () => {
    const { status, body } = await execute(service, { url: world.target.url('/hook'), body: { a: 1 } });
    assert.deepEqual([status, body.job.status], [200, 'succeeded']);
    for (const path of ['/', '/status', '/docs', '/verify', '/favicon.svg', '/favicon.ico', '/api/snippets'])
      assert.equal((await fetch(service.url + path)).status, 200, path);
    const page = await (await fetch(service.url)).text();
    const [, style] = /href="(\/page\.css[^"]*)"/.exec(page) ?? [];
    assert.equal((await fetch(service.url + style)).headers.get('content-type'), 'text/css; charset=utf-8');
    const [, script] = /src="(\/verify\.js[^"]*)"/.exec(page) ?? [];
    assert.equal((await fetch(service.url + script)).status, 200);
  });

  test('relay verify, export, audit', async () => {
    const { body } = await execute(service, { url: world.target.url('/hook'), body: { a: 2 } });
    const receipt = join(folder, 'receipt.json');
    writeFileSync(receipt, JSON.stringify(body));
    const keys = join(folder, 'jwks.json');
    writeFileSync(keys, JSON.stringify((await get(`${service.url}/.well-known/jwks.json`)).body));
    const verified = await relay(['verify', receipt, '--keys', keys]);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    const env = { DATA_DIR: world.dataDir };
    const exported = await relay(['export', '--out', join(folder, 'events.ndjson')], env);
    assert.equal(exported.code, 0, exported.stderr);
    const audited = await relay(['audit', '--events', join(folder, 'events.ndjson')]);
    assert.equal(audited.code, 0, audited.stdout + audited.stderr);
  });

  test('wrote nothing where it was started', () => assert.deepEqual(readdirSync(cwd), []));
});

describe('the binary with Postgres', needsPostgres(), () => {
  let server: PostgresServer;
  before(async () => {
    server = await postgresServer();
  });
  after(() => server.remove());

  test('relay migrate, rebuild and rebuild --check; paid calls', async () => {
    const world = await makeWorld({ embedded: true });
    try {
      const env = { DATABASE_URL: await server.newDatabase(), DATA_DIR: world.dataDir };
      assert.equal((await relay(['migrate'], env)).code, 0);
      const service = await world.start(env);
      await execute(service, { url: world.target.url('/hook'), body: { a: 1 } });
      await service.stop();
      for (const args of [['rebuild'], ['rebuild', '--check'], ['audit']]) {
        const { code, stdout, stderr } = await relay(args, env);
        assert.equal(code, 0, args.join(' ') + stdout + stderr);
      }
    } finally {
      await world.end();
    }
    // Recovers signers with an embedded file of a package.
    const journey = spawnSync(BUN, ['test', './test/journeys/paid-once.test.ts'], {
      cwd: rootPath,
      encoding: 'utf8',
    });
    assert.equal(journey.status, 0, journey.stdout + journey.stderr);
  });
});
