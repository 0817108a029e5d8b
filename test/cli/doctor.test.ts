// relay doctor: each part by its own fault, beside running services, without a secret and without a trace.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import postgres from 'postgres';
import { facilitatorDouble } from '#test/support/chain/facilitator-double.ts';
import { headersGuard } from '#test/support/chain/facilitator-login.ts';
import { startChainNode } from '#test/support/chain/scripted-node.ts';
import { startEventStoreServer } from '#test/support/log/eventstore-server.ts';
import { needsPostgres, postgresServer } from '#test/support/log/postgres.ts';
import { runCli } from '#test/support/process/cli.ts';
import { endOf } from '#test/support/process/cli-process.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';
import { runtimeCommand, runtimeName } from '#test/support/process/runtime.ts';
import { waitFor } from '#test/support/process/service.ts';
import { C2spWitness } from '#test/support/witness/c2sp-witness.ts';
import { execute, makeWorld, type World } from '#test/support/world/service-world.ts';

type Findings = Readonly<Record<string, { readonly state: string; readonly message: string }>>;
const SECRET = 'a-secret-that-no-one-prints';

let world: World;
before(async () => {
  world = await makeWorld({ embedded: true });
});
after(() => world.end());

const examined = (code: number | null, stdout: string, stderr: string) => {
  assert.ok(code === 0 || code === 1, stderr);
  assert.ok(!(stdout + stderr).includes(SECRET), 'no secret is printed');
  const { ok, findings }: { ok: boolean; findings: { part: string; state: string; message: string }[] } =
    JSON.parse(stdout);
  assert.equal(code, ok ? 0 : 1);
  for (const { message } of findings) assert.doesNotMatch(message, /\n/);
  const found: Findings = Object.fromEntries(findings.map(({ part, ...rest }) => [part, rest]));
  const problems = findings.filter(({ state }) => state === 'problem').map(({ part }) => part);
  return { found, problems };
};

/** Whatever listens at the default port of this machine is not looked at. */
const environment = () => ({ ...world.env, PORT: '0' });

async function doctor(env: Readonly<Record<string, string>> = {}) {
  const args = ['doctor', '--json', '--target', world.target.url('/page')];
  const { code, stdout, stderr } = await runCli(args, { env: { ...environment(), ...env } });
  return examined(code, stdout, stderr);
}

const folderOf = (name: string): string => {
  const path = join(world.folder, name);
  mkdirSync(path);
  return path;
};

describe('relay doctor on embedded stores', () => {
  test('before the first start: all works, and nothing is created', async () => {
    const DATA_DIR = join(world.folder, 'none');
    const { problems, found } = await doctor({ DATA_DIR });
    assert.deepEqual(problems, []);
    assert.match(found.event_log?.message ?? '', /created at the first start/);
    assert.equal(found.chain?.state, 'skipped');
    assert.ok(!existsSync(DATA_DIR));
    const empty = folderOf('empty');
    assert.match((await doctor({ DATA_DIR: empty })).found.event_log?.message ?? '', /a synced append takes/);
    assert.deepEqual(readdirSync(empty), []);
  });

  test('beside a running service, which continues; the same after its end', async () => {
    const service = await world.start();
    const calls = Array.from({ length: 20 }, (_, n) =>
      execute(service, { url: world.target.url('/hook'), body: { n } }),
    );
    const { problems, found } = await doctor();
    assert.deepEqual(problems, []);
    assert.match(found.event_log?.message ?? '', /events\.db is read and written, up to position \d+/);
    assert.match(found.signing_keys?.message ?? '', /keys\.json matches the event log/);
    assert.match(found.egress?.message ?? '', /answers 200 over TLSv1\.3/);
    for (const { status } of await Promise.all(calls)) assert.equal(status, 200);
    assert.deepEqual(
      readdirSync(world.dataDir).filter((name) => name.startsWith('doctor')),
      [],
    );
    await service.stop();
    assert.deepEqual((await doctor()).problems, []);
    assert.equal((await runCli(['audit'], { env: world.env })).code, 0);
  });

  test('an invalid configuration: each variable, and nothing else', async () => {
    const { problems, found } = await doctor({ PORT: 'x', X402_PRICES: '1' });
    assert.deepEqual(problems, ['configuration', 'configuration']);
    assert.deepEqual(Object.keys(found), ['configuration']);
  });

  test('a key file that others may read, another key file, a log that is missing', async () => {
    const keys = join(world.dataDir, 'keys.json');
    chmodSync(keys, 0o644);
    assert.match((await doctor()).found.signing_keys?.message ?? '', /chmod|others/);
    chmodSync(keys, 0o600);
    const other = join(folderOf('other-keys'), 'keys.json');
    assert.equal((await runCli(['keys', 'init', '--file', other])).code, 0);
    assert.deepEqual((await doctor({ SIGNING_KEYS_FILE: other })).problems, ['signing_keys']);
    const lost = folderOf('lost');
    writeFileSync(join(lost, 'keys.json'), readFileSync(keys, 'utf8'), { mode: 0o600 });
    const { problems, found } = await doctor({ DATA_DIR: lost });
    assert.deepEqual(problems, ['event_log']);
    assert.match(found.event_log?.message ?? '', /events\.db is missing/);
    assert.deepEqual(readdirSync(lost), ['keys.json']);
  });

  test('names that are not found, a target that is not reached', async () => {
    world.dns.set('nowhere.example.com', { rcode: 'NXDOMAIN' });
    const target = world.target.url('/page').replace(/\/\/[^:/]+/, '//nowhere.example.com');
    const args = ['doctor', '--json', '--target', target];
    const { code, stdout, stderr } = await runCli(args, { env: environment() });
    const { problems, found } = examined(code, stdout, stderr);
    assert.deepEqual(problems, ['dns', 'egress']);
    assert.match(found.dns?.message ?? '', /: check EGRESS_DNS_SERVERS/);
    assert.match(found.egress?.message ?? '', /: look at the line dns/);
  });

  test('an address as the target: needs no DNS, and is reached by the rules of a call', async () => {
    const target = 'https://127.0.0.1:1/';
    const { code, stdout, stderr } = await runCli(['doctor', '--json', '--target', target], {
      env: { ...environment(), EGRESS_ALLOW_CIDRS: '' },
    });
    const { problems, found } = examined(code, stdout, stderr);
    assert.deepEqual(problems, ['egress']);
    assert.equal(found.dns?.state, 'skipped');
    assert.match(found.egress?.message ?? '', /target_refused.*EGRESS_DENY_CIDRS/);
  });

  test('few files may be opened: a warning', async () => {
    const given = ['doctor', '--json', '--target', world.target.url('/page')];
    const [command, args] = runtimeCommand('src/cli/relay.ts', given);
    const env = { PATH: process.env.PATH, ...environment() };
    const child = spawn('prlimit', ['--nofile=512:512', command, ...args], { env });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (part: string) => {
        output[name] += part;
      });
    const { code, stdout, stderr } = await endOf(child, output);
    const { found, problems } = examined(code, stdout, stderr);
    assert.deepEqual(problems, []);
    // Deno reads nothing below /proc.
    if (runtimeName === 'deno') return assert.equal(found.open_files?.state, 'skipped');
    assert.equal(found.open_files?.state, 'warning');
    assert.match(found.open_files?.message ?? '', /512 files, and MAX_IN_FLIGHT=512 may need 1792/);
  });

  test('prints one line for each part', async () => {
    const { code, stdout, stderr } = await runCli(['doctor', '--target', world.target.url('/page')], {
      env: environment(),
    });
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout.trimEnd().split('\n').length, 16);
    assert.match(stdout, /^✓ configuration +demo mode: calls are free\n/);
  });
});

describe('relay doctor --live', () => {
  test('exits with 0 while the service answers, and with 1 after its end', async () => {
    const dataDir = folderOf('living');
    const service = await world.start({ DATA_DIR: dataDir });
    const env = { HOST: '127.0.0.1', PORT: new URL(service.url).port };
    // A busy machine may answer later than the program waits.
    const isLive = async () => (await runCli(['doctor', '--live'], { env })).code === 0;
    await waitFor('the service to answer', isLive);
    assert.match((await doctor(env)).found.listen?.message ?? '', /a service answers/);
    await service.stop();
    assert.match((await doctor(env)).found.listen?.message ?? '', /is free/);
    // It answers 200, as many do at any path.
    await using other = await loopbackServer((_, response) => response.writeHead(200).end('{"ok":true}'));
    assert.deepEqual((await doctor({ PORT: new URL(other.url).port })).problems, ['listen']);
    assert.match(
      (await doctor({ PORT: new URL(other.url).port })).found.listen?.message ?? '',
      /set another PORT/,
    );
    const { code, stdout } = await runCli(['doctor', '--live'], { env });
    assert.equal(code, 1);
    assert.match(stdout, /✗ service +http:\/\/127\.0\.0\.1:\d+\/health\/live does not answer/);
    assert.equal((await runCli(['doctor', '--live'], { env: { PORT: '0' } })).code, 2);
  });
});

describe('relay doctor on an address that cannot be listened at', () => {
  const found = async (HOST: string) => {
    const { problems, found } = await doctor({ HOST, PORT: '3402', ALLOW_FREE_RELAY: 'true' });
    assert.deepEqual(problems, ['listen']);
    return found.listen?.message ?? '';
  };
  test('another machine’s', async () => assert.match(await found('192.0.2.1'), /EADDRNOTAVAIL.*HOST/));
  test('a name without an address', async () => assert.match(await found('none.invalid'), /HOST/));
});

test('relay doctor on a database whose proxy ends every connection: a problem, and the end', async () => {
  const proxy = createServer((client) => {
    client.on('error', () => undefined);
    client.once('data', () => client.end());
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  assert.ok(typeof address === 'object' && address !== null);
  try {
    const { problems, found } = await doctor({
      DATABASE_URL: `postgres://relay:${SECRET}@127.0.0.1:${address.port}/relay`,
    });
    assert.deepEqual(problems, ['read_models']);
    assert.match(found.read_models?.message ?? '', /\(CONNECTION_CLOSED\): compare DATABASE_URL/);
  } finally {
    proxy.close();
  }
});

describe('relay doctor on shared stores', needsPostgres(), () => {
  test('Postgres: unavailable, a wrong password, rights that are missing, and all that is needed', async () => {
    const server = await postgresServer();
    const { host, pathname } = new URL(await server.newDatabase());
    const owner = postgres(`postgres://relay@${host}${pathname}`, { max: 1, onnotice: () => undefined });
    const role = `doctor_${pathname.slice(-12)}`;
    try {
      await owner.unsafe(`create role ${role} login password '${SECRET}'`);
      const env = { DATABASE_URL: `postgres://${role}:${SECRET}@${host}${pathname}` };
      const message = async () => (await doctor(env)).found.read_models;
      assert.match((await message())?.message ?? '', /lacks CREATE on the database/);
      await owner.unsafe(`grant create on database ${pathname.slice(1)} to ${role}`);
      assert.match((await message())?.message ?? '', /lacks CREATE on schema public/);
      await owner.unsafe(`grant create on schema public to ${role}`);
      assert.equal((await message())?.state, 'ok');
      const closed = { DATABASE_URL: `postgres://relay:${SECRET}@127.0.0.1:1/relay` };
      assert.match(
        (await doctor(closed)).found.read_models?.message ?? '',
        /\(ECONNREFUSED\): compare DATABASE_URL/,
      );
      const none = { DATABASE_URL: `postgres://nobody_here:${SECRET}@${host}${pathname}` };
      assert.match(
        (await doctor(none)).found.read_models?.message ?? '',
        /role "nobody_here" does not exist/,
      );
    } finally {
      await owner.end({ timeout: 5 });
      await server.remove();
    }
  });

  test('EventStoreDB: read, and an append that the server refuses; nothing is stored', async () => {
    const server = await startEventStoreServer();
    const postgresUrl = 'postgres://relay@127.0.0.1:1/relay';
    const keys = join(folderOf('shared'), 'keys.json');
    try {
      await runCli(['keys', 'init', '--file', keys]);
      const env = {
        DATA_DIR: folderOf('of-shared'),
        EVENTSTORE_URL: server.url,
        DATABASE_URL: postgresUrl,
        SIGNING_KEYS_FILE: keys,
      };
      const stored = server.events.length;
      const { found, problems } = await doctor(env);
      assert.deepEqual(problems, ['read_models']);
      assert.match(found.event_log?.message ?? '', /is read and takes appends/);
      assert.equal(server.events.length, stored);
      await server.stop();
      const args = ['doctor', '--json', '--target', world.target.url('/page')];
      const { code, stdout, stderr } = await runCli(args, { env: { ...environment(), ...env } });
      assert.equal(stderr, '');
      assert.match(
        examined(code, stdout, stderr).found.event_log?.message ?? '',
        /EVENTSTORE_URL does not answer.*\(ECONNREFUSED\): compare EVENTSTORE_URL/,
      );
    } finally {
      await server.end();
    }
  });
});

const TERMS = `a call costs $0.003, paid to 0x${'1'.repeat(40)} on eip155:8453`;

describe('relay doctor with payments', () => {
  test('the chain and its token, the facilitator and its login', async () => {
    await using chain = await startChainNode();
    let demanded = SECRET;
    await using facilitator = await facilitatorDouble(
      undefined,
      headersGuard(() => ({ 'x-api-key': demanded })),
    );
    const headers = join(world.folder, 'headers');
    writeFileSync(headers, `x-api-key: ${SECRET}\n`, { mode: 0o600 });
    const env = {
      X402_ENABLED: 'true',
      X402_PAY_TO: `0x${'1'.repeat(40)}`,
      X402_FACILITATOR_URL: facilitator.url,
      X402_FACILITATOR_HEADERS_FILE: headers,
      X402_RPC_URL: chain.url,
    };
    const good = await doctor(env);
    assert.deepEqual(good.problems, []);
    assert.match(good.found.chain?.message ?? '', /serves eip155:8453, token 0x\w{40} with 6 decimals/);
    assert.match(good.found.chain?.message ?? '', /X402_PAY_TO holds 12.5 tokens$/);
    const terms = good.found.payment_terms;
    assert.deepEqual([terms?.state, terms?.message], ['ok', TERMS]);
    const risky = {
      X402_PRICE: '$1.01',
      X402_ASSET: `0x${'2'.repeat(40)}`,
      X402_REFUND_FROM: `0x${'ab'.repeat(20)}`,
    };
    const warned = (await doctor({ ...env, ...risky })).found.payment_terms;
    assert.equal(warned?.state, 'warning');
    for (const words of [
      /above \$1/,
      /not the USDC of eip155:8453/,
      /X402_REFUND_FROM has no checksum/,
      /this operator alone/,
    ])
      assert.match(warned?.message ?? '', words);
    assert.match(good.found.facilitator?.message ?? '', /accepts our login; its clock agrees/);
    demanded = 'another';
    assert.match((await doctor(env)).found.facilitator?.message ?? '', /refuses our login/);
    chain.faults.chainId = 1;
    assert.match(
      (await doctor(env)).found.chain?.message ?? '',
      /^X402_RPC_URL serves chain 1, and X402_NETWORK/,
    );
    await chain.down();
    const none = (await doctor(env)).found.chain?.message ?? '';
    assert.match(none, /no usable answer \([\w ]*refused\w*\): check X402_RPC_URL/i);
    const page = await doctor({ ...env, X402_RPC_URL: facilitator.url, X402_FACILITATOR_URL: chain.url });
    assert.match(page.found.chain?.message ?? '', /no usable answer \(status \d+\): check X402_RPC_URL/);
    assert.match(
      page.found.facilitator?.message ?? '',
      /does not answer \(unreachable[\w, ]*\): check X402_FACILITATOR_URL/,
    );
    await using elsewhere = await loopbackServer(async (_, response) => {
      response.writeHead(404).end();
    });
    const path = await doctor({ ...env, X402_FACILITATOR_URL: elsewhere.url });
    assert.match(
      path.found.facilitator?.message ?? '',
      /no usable answer \(status_404\): check the path of X402_FACILITATOR_URL/,
    );
  });
});

test('relay doctor: witnesses that answer, and those that do not', async () => {
  const witness = new C2spWitness();
  const server = await loopbackServer(witness.handle);
  const policy = join(world.folder, 'witnesses');
  writeFileSync(policy, `witness w1 ${witness.vkey} ${server.url}\nquorum w1\n`);
  const env = { WITNESS_POLICY_FILE: policy };
  try {
    assert.match((await doctor(env)).found.witnesses?.message ?? '', /^1 of WITNESS_POLICY_FILE answer/);
  } finally {
    await server.down();
  }
  const { found, problems } = await doctor(env);
  assert.deepEqual(problems, ['witnesses']);
  assert.match(found.witnesses?.message ?? '', /requires a quorum: w1 \(unreachable\)/);
});
