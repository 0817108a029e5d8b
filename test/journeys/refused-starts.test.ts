// Refused starts: each ends at once with code 2 and a message that names the problem, and damages nothing.
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createKeyFile } from '#src/adapters/signing/key-file.ts';
import { challenge } from '#test/support/chain/payer.ts';
import { startChainNode, USDC_TOKEN } from '#test/support/chain/scripted-node.ts';
import { type Environment, type Service, spawnService } from '#test/support/process/service.ts';
import { execute, get, makeWorld, type Report, type World } from '#test/support/world/service-world.ts';

let world: World;
let first: Service;

async function refusedStart(env: Environment): Promise<string> {
  const { code, stdout, stderr } = await spawnService({ PORT: '0', ...world.env, ...env }).ended;
  assert.equal(code, 2, stdout + stderr);
  assert.doesNotMatch(stdout, /"listening"/);
  assert.notEqual(stderr, '');
  assert.doesNotMatch(stderr, /\n\s+at /, 'words, no stack');
  if (!stderr.startsWith('wrong configuration')) assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
  return stderr;
}

/** The first process on the data directory continues undisturbed. */
async function assertUnharmed(): Promise<void> {
  const { status, body } = await execute(first, { url: world.target.url() });
  assert.equal(status, 200);
  const report = await get<Report>(body.links.verifyJob ?? '');
  assert.deepEqual([report.status, report.body.ok], [200, true]);
  const health = await get<{ ok: boolean }>(`${first.url}/health`);
  assert.deepEqual([health.status, health.body.ok], [200, true]);
}

describe('a start is refused', () => {
  before(async () => {
    world = await makeWorld({ embedded: true });
    first = await world.start();
  });
  after(() => world.end());

  test('a second process on one data directory: names the first, which continues', async () => {
    const stderr = await refusedStart({});
    assert.match(stderr, new RegExp(`\\b${first.pid}\\b`));
    await assertUnharmed();
  });

  test('embedded read models over a log that processes with DATABASE_URL serve: names DATABASE_URL, and back', async () => {
    const DATA_DIR = join(world.folder, 'tenants');
    // An unavailable database: the process still serves executions.
    const DATABASE_URL = 'postgres://user@127.0.0.1:1/none';
    const sharing = await world.start({ DATA_DIR, DATABASE_URL });
    assert.match(await refusedStart({ DATA_DIR }), /DATABASE_URL/);
    const { status } = await execute(sharing, { url: world.target.url() });
    assert.equal(status, 200);
    await sharing.stop();
    const alone = await world.start({ DATA_DIR }, 'listening');
    assert.match(await refusedStart({ DATA_DIR, DATABASE_URL }), /DATABASE_URL/);
    await alone.stop();
  });

  test('a node of another chain is named; with its own the price is in units of its token', async () => {
    await using node = await startChainNode();
    const odd = {
      DATA_DIR: join(world.folder, 'unpayable'),
      DATABASE_URL: 'postgres://user@127.0.0.1:1/none',
      X402_ENABLED: 'true',
      X402_PAY_TO: `0x${'1'.repeat(40)}`,
      X402_FACILITATOR_URL: 'http://127.0.0.1:9',
      X402_RPC_URL: node.url,
      X402_NETWORK: 'eip155:31337',
      X402_ASSET: `0x${'2'.repeat(40)}`,
    };
    const otherChain = 'X402_RPC_URL serves chain 8453, and X402_NETWORK is eip155:31337';
    assert.equal(await refusedStart(odd), `wrong configuration:\n  ${otherChain}\n`);
    node.faults.chainId = 31337;
    node.faults.token = { ...USDC_TOKEN, name: 'Euro', version: '9', decimals: 18 };
    const paid = await world.start(odd, 'listening');
    const [asked] = (await challenge(`${paid.url}/api/execute/webhook`)).accepts;
    assert.deepEqual(
      [asked?.amount, asked?.extra.name, asked?.extra.version],
      [`3${'0'.repeat(15)}`, 'Euro', '9'],
    );
    assert.equal((await paid.stop()).code, 0);
  });

  test('a port in use', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const { port } = holder.address() as { port: number };
    try {
      const DATABASE_URL = 'postgres://user@127.0.0.1:1/none';
      const env = { DATA_DIR: join(world.folder, 'port'), DATABASE_URL, PORT: String(port) };
      const stderr = await refusedStart(env);
      assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port}\\b`));
    } finally {
      await new Promise((resolve) => holder.close(resolve));
    }
  });

  test('another key, or another secret, than the log was written with; with its own it starts again', async () => {
    await assertUnharmed();
    assert.equal((await first.stop()).code, 0);
    createKeyFile(join(world.folder, 'stranger', 'keys.json'));
    const own = JSON.parse(readFileSync(join(world.dataDir, 'keys.json'), 'utf8'));
    const theirs = JSON.parse(readFileSync(join(world.folder, 'stranger', 'keys.json'), 'utf8'));
    const otherKeys = { ...theirs, hmacSecret: own.hmacSecret };
    const otherSecret = { ...own, hmacSecret: theirs.hmacSecret };
    assert.match(await refusedStart({ SIGNING_KEYS_FILE: keyFile('theirs', theirs) }), /secret/);
    assert.match(await refusedStart({ SIGNING_KEYS_FILE: keyFile('secret', otherSecret) }), /secret/);
    assert.match(await refusedStart({ SIGNING_KEYS_FILE: keyFile('keys', otherKeys) }), /does not know/);
    const open = keyFile('open', own);
    chmodSync(open, 0o644);
    assert.match(await refusedStart({ SIGNING_KEYS_FILE: open }), /open\.json/);
    first = await world.start({ SIGNING_KEYS_FILE: keyFile('own', own) });
    await assertUnharmed();
  });

  function keyFile(name: string, content: unknown, mode = 0o600): string {
    const path = join(world.folder, `${name}.json`);
    writeFileSync(path, JSON.stringify(content), { mode });
    return path;
  }
});
