// relay demo: every fact holds, the output is text or JSON, and no files are left behind.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { sleep } from '#src/lib/time.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('demo-test');

/** A separate TMPDIR for each test, to detect files left behind. */
function scratch(name: string): Readonly<Record<string, string>> {
  const TMPDIR = join(folder, name);
  mkdirSync(TMPDIR);
  return { TMPDIR };
}
const leftBehind = (env: Readonly<Record<string, string>>) => readdirSync(env.TMPDIR ?? '');

const FACTS = [
  'job_succeeded',
  'called_once',
  'request_as_sent',
  'webhook_id_is_job',
  'webhook_signature_valid',
  'receipt_verified_offline',
  'receipt_logged',
  'receipt_witnessed',
  'replayed',
  'replay_same_receipt',
  'replay_not_sent',
  'links_work',
];

describe('relay demo', () => {
  test('--once --json: every fact holds; the environment is ignored, and a used default port', async () => {
    const holder = createServer();
    // It may be in use by another demo or test already.
    await new Promise<void>((resolve) =>
      holder.once('error', () => resolve()).listen(3402, '127.0.0.1', resolve),
    );
    const closedPort = 'http://127.0.0.1:1';
    const env = {
      ...scratch('json'),
      HTTP_PROXY: closedPort,
      http_proxy: closedPort,
      HTTPS_PROXY: closedPort,
      https_proxy: closedPort,
      NODE_USE_ENV_PROXY: '1',
      PORT: 'nonsense',
      X402_ENABLED: 'true',
      DATA_DIR: join(folder, 'untouched'),
      DATABASE_URL: 'postgres://127.0.0.1:1/none',
      EGRESS_DENY_CIDRS: '127.0.0.0/8',
    };
    const { code, stdout, stderr } = await startCli(['demo', '--once', '--json'], { env }).ended;
    holder.close();
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(existsSync(join(folder, 'untouched')), false);
    const story = JSON.parse(stdout);
    assert.notEqual(story.service, 'http://127.0.0.1:3402');
    assert.deepEqual(
      story.facts.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]),
      FACTS.map((name) => [name, true]),
    );
    assert.equal(story.ok, true);
    assert.match(story.job.id, /^job_/);
    assert.deepEqual([story.job.status, story.job.attempts, story.job.responseStatus], ['succeeded', 1, 200]);
    assert.deepEqual(JSON.parse(story.received.body), { event: 'order.paid', order: 4711, total: '12.50' });
    assert.equal(story.received.headers['webhook-id'], story.job.id);
    const { ok, receiptId, jobId, signatureVerified, checks } = story.verification;
    assert.deepEqual([ok, receiptId, jobId, signatureVerified], [true, story.receipt.id, story.job.id, true]);
    assert.equal(checks.length, 9);
    for (const name of ['job', 'receipt', 'verifyJob', 'verifyReceipt', 'proof']) {
      assert.ok(story.links[name].startsWith(`${story.service}/`), name);
    }
    assert.deepEqual(leftBehind(env), []);
  });

  test('runs until it is stopped, prints text, answers meanwhile, and leaves nothing behind', async () => {
    const env = scratch('stays');
    const cli = startCli(['demo'], { env });
    await cli.until((stdout) => stdout.includes('Ctrl-C stops it'));
    assert.equal(cli.stdout().match(/^ {2}✓ /gm)?.length, 9 + FACTS.length);
    assert.doesNotMatch(cli.stdout(), /✗|\u001b|undefined/);
    assert.match(cli.stdout(), /\n {2}webhook-signature +v1a,/);
    assert.match(cli.stdout(), /\nEverything is as expected\.\n/);
    assert.match(cli.stdout(), /\n {2}proof +http:\/\/127\.0\.0\.1:\d+\/proof\/job_/);
    const [, link = ''] = /verifyReceipt +(http:\S+)/.exec(cli.stdout()) ?? [];
    const report: { ok?: unknown } = JSON.parse(await (await fetch(link)).text());
    assert.equal(report.ok, true);
    const [, files = ''] = /offline +npx bun src\/cli\/relay\.ts verify (.+)\n/.exec(cli.stdout()) ?? [];
    assert.equal((await startCli(['verify', ...files.split(' ')]).ended).code, 0);
    const [, failing = ''] = /failing target +(https:\S+)/.exec(cli.stdout()) ?? [];
    const retried = await fetch(`${new URL(link).origin}/api/execute/webhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ url: failing, retry: { attempts: 2, backoffMs: 0 } }),
    });
    const { job }: { job: Record<string, unknown> } = JSON.parse(await retried.text());
    assert.deepEqual([retried.status, job.attempts, job.responseStatus], [502, 2, 503]);
    cli.signal('SIGINT');
    const { code, stderr } = await cli.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(leftBehind(env), []);
    // Another demo may have its port by now; that one has no such receipt, or is still starting (503).
    assert.ok(
      await fetch(link).then(
        ({ status }) => status !== 200,
        () => true,
      ),
    );
  });

  test('--schedules without --paid cannot run', async () => {
    const { code, stderr } = await startCli(['demo', '--schedules']).ended;
    assert.deepEqual([code, stderr], [2, 'relay: --schedules needs --paid: runs are paid for\n']);
  });

  test(
    '--paid --schedules: the printed lines buy two runs; node and facilitator answer',
    needsAnvil(),
    async () => {
      const env = scratch('schedules');
      const cli = startCli(['demo', '--paid', '--schedules'], { env });
      await cli.until((stdout) => stdout.includes('Ctrl-C stops it'));
      const text = cli.stdout();
      const variables = Object.fromEntries(
        [...text.matchAll(/^export (\w+)=(\S+)$/gm)].map(([, name = '', value = '']) => [name, value]),
      );
      const [, line = ''] = /^npx bun src\/cli\/relay\.ts (pay --schedule .*)$/m.exec(text) ?? [];
      const args = line.replace(/"\$(\w+)"/g, (_, name: string) => variables[name] ?? '').split(' ');
      const bought = await startCli([...args, '--json'], { env: { ...env, ...variables } }).ended;
      assert.equal(bought.code, 0, bought.stderr);
      assert.equal(bought.stdout.match(/"dueAt":/g)?.length, 2, bought.stdout);
      const [, node = ''] = /^ {2}node +(http:\S+)$/m.exec(text) ?? [];
      const chain = await fetch(node, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }),
      });
      assert.match(await chain.text(), /"result":"0x2105"/);
      const [, facilitator = ''] = /^ {2}facilitator +(http:\S+)$/m.exec(text) ?? [];
      assert.equal((await fetch(`${facilitator}/supported`)).status, 200);
      cli.signal('SIGINT');
      assert.deepEqual([(await cli.ended).code, leftBehind(env)], [0, []]);
    },
  );

  test('a signal during the start leaves nothing behind', async () => {
    const env = scratch('early');
    const cli = startCli(['demo'], { env });
    while (leftBehind(env).length === 0) await sleep(1);
    cli.signal('SIGTERM');
    const { code, stderr } = await cli.ended;
    assert.equal(code, 0, stderr);
    assert.deepEqual(leftBehind(env), []);
  });
});
