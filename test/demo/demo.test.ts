// relay demo: the story is true, in words and for machines, and nothing of it is left behind.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runCli, startCli } from '#test/support/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-demo-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A TMPDIR of its own for each test: what is in it afterwards was left behind. */
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
  'replayed',
  'replay_same_receipt',
  'replay_not_sent',
  'links_work',
];

describe('relay demo', () => {
  test('--once --json: every fact holds, and the figures are those of one call', async () => {
    const env = scratch('json');
    const { code, stdout, stderr } = await runCli(['demo', '--once', '--json'], { env });
    assert.deepEqual([code, stderr], [0, '']);
    const story = JSON.parse(stdout);
    assert.deepEqual(
      story.facts.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]),
      FACTS.map((name) => [name, true]),
    );
    assert.equal(story.ok, true);
    assert.match(story.job.id, /^job_/);
    assert.deepEqual([story.job.status, story.job.attempts, story.job.responseStatus], ['succeeded', 1, 200]);
    assert.deepEqual(JSON.parse(story.received.body), story.sent.body);
    assert.equal(story.received.headers['webhook-id'], story.job.id);
    assert.deepEqual(story.replay, {
      idempotentReplay: true,
      receiptId: story.receipt.id,
      requestsAtTarget: 1,
    });
    const { ok, receiptId, jobId, signatureVerified, checks } = story.verification;
    assert.deepEqual([ok, receiptId, jobId, signatureVerified], [true, story.receipt.id, story.job.id, true]);
    assert.equal(checks.length, 8);
    for (const name of ['job', 'receipt', 'verifyJob', 'verifyReceipt', 'proof']) {
      assert.ok(story.links[name].startsWith(`${story.service}/`), name);
    }
    assert.deepEqual(leftBehind(env), []);
  });

  test('--once: tells it in words, every mark good, without a colour', async () => {
    const env = scratch('words');
    const { code, stdout, stderr } = await runCli(['demo', '--once'], { env });
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout.match(/^ {2}✓ /gm)?.length, 8 + FACTS.length);
    assert.doesNotMatch(stdout, /✗|\u001b|undefined/);
    assert.match(stdout, /\n {2}webhook-signature +v1a,/);
    // nothing that is gone when it ends
    assert.doesNotMatch(stdout, /proof page|Try it yourself/);
    assert.match(stdout, /Everything is as expected\.\n$/);
    assert.deepEqual(leftBehind(env), []);
  });

  test('the environment has no say: neither a proxy nor what configures a service', async () => {
    const nobody = 'http://127.0.0.1:1';
    const env = {
      ...scratch('environment'),
      HTTP_PROXY: nobody,
      http_proxy: nobody,
      HTTPS_PROXY: nobody,
      https_proxy: nobody,
      NODE_USE_ENV_PROXY: '1',
      PORT: 'nonsense',
      X402_ENABLED: 'true',
      DATA_DIR: join(folder, 'untouched'),
      DATABASE_URL: 'postgres://127.0.0.1:1/none',
      EGRESS_DENY_CIDRS: '127.0.0.0/8',
    };
    const { code, stderr } = await runCli(['demo', '--once'], { env });
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(existsSync(join(folder, 'untouched')), false);
  });

  test('stays up until it is told to stop, works meanwhile, and then leaves nothing', async () => {
    const env = scratch('stays');
    const cli = startCli(['demo'], { env });
    await cli.until((stdout) => stdout.includes('Ctrl-C stops it'));
    assert.match(cli.stdout(), /\n {2}proof page +http:\/\/127\.0\.0\.1:\d+\/proof\/job_/);
    const [, link = ''] = /verify +(http:\S+)/.exec(cli.stdout()) ?? [];
    const report: { ok?: unknown } = JSON.parse(await (await fetch(link)).text());
    assert.equal(report.ok, true);
    const [, files = ''] = /offline +npx bun src\/cli\/relay\.ts verify (.+)\n/.exec(cli.stdout()) ?? [];
    assert.equal((await runCli(['verify', ...files.split(' ')])).code, 0);
    cli.signal('SIGINT');
    const { code, stderr } = await cli.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(leftBehind(env), []);
    await assert.rejects(fetch(link));
  });

  test('a signal while it starts leaves nothing either', async () => {
    const env = scratch('early');
    const cli = startCli(['demo'], { env });
    while (leftBehind(env).length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    cli.signal('SIGTERM');
    const { code } = await cli.ended;
    assert.equal(code, 0);
    assert.deepEqual(leftBehind(env), []);
  });

  test('--data-dir keeps the data, and a second demo on it works', async () => {
    const data = join(folder, 'kept');
    for (const round of [1, 2]) {
      const { code, stdout } = await runCli(['demo', '--once', '--json', '--data-dir', data]);
      assert.equal(code, 0, `round ${round}: ${stdout}`);
      const { files } = JSON.parse(stdout);
      assert.equal(dirname(files.receipt), data);
      const offline = await runCli(['verify', files.receipt, '--keys', files.keys]);
      assert.equal(offline.code, 0);
    }
  });

  test('the usual port is taken and none was asked for: any free one does', async () => {
    const holder = createServer();
    // held by another demo or test is as good
    await new Promise<void>((resolve) =>
      holder.once('error', () => resolve()).listen(3402, '127.0.0.1', resolve),
    );
    const env = scratch('usual');
    const { code, stdout, stderr } = await runCli(['demo', '--once', '--json'], { env });
    holder.close();
    assert.deepEqual([code, stderr], [0, '']);
    assert.notEqual(JSON.parse(stdout).service, 'http://127.0.0.1:3402');
    assert.deepEqual(leftBehind(env), []);
  });

  test('--port: listens there; taken by another it cannot run', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const { port } = holder.address() as AddressInfo;
    const env = scratch('port');
    const taken = await runCli(['demo', '--once', '--port', String(port)], { env });
    assert.equal(taken.code, 2);
    assert.match(taken.stderr, /^relay: the service does not start: [^\n]+\n$/);
    assert.deepEqual(leftBehind(env), []);
    await new Promise<void>((resolve) => holder.close(() => resolve()));
    const data = join(folder, 'free-port');
    const asked = ['--json', '--port', String(port), '--data-dir', data];
    const free = await runCli(['demo', '--once', ...asked], { env });
    assert.equal(JSON.parse(free.stdout).service, `http://127.0.0.1:${port}`);
  });
});
