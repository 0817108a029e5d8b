// relay demo --paid: a real chain, a real payment, and every fact compared with the chain and the target.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { EXIT, exitOf } from '#src/cli/exit.ts';
import { startPaidWorld } from '#src/demo/paid.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import { runtimeName } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const needs = needsAnvil();
const TMPDIR = testFolder('demo-paid-test');

/** The chain is started through the shell. */
const SHELL = { env: { TMPDIR }, mayRun: '/bin/sh' };

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
  'receipt_names_payment',
  'receipt_binds_request',
  'answer_matches_receipt',
  'charged_once',
  'replay_not_charged',
  'links_work',
];

describe('relay demo --paid', needs, () => {
  test('--once --json: one charge of 3000 units, one call, a receipt that names the payment', async () => {
    const { code, stdout, stderr } = await startCli(['demo', '--paid', '--once', '--json'], SHELL).ended;
    assert.deepEqual([code, stderr], [0, '']);
    const story = JSON.parse(stdout);
    assert.deepEqual(
      story.facts.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]),
      FACTS.map((name) => [name, true]),
    );
    assert.equal(story.ok, true);
    assert.doesNotMatch(stdout, /private_?key|buyerKey/i);
    const { verification } = story;
    assert.deepEqual([verification.ok, verification.receiptId], [true, story.receipt.id]);
    assert.deepEqual(readdirSync(TMPDIR), []);
  });

  test('a proxy that covers the chain: exit 2 with the reason, and no chain left running', async () => {
    const env = { TMPDIR, HTTP_PROXY: 'http://127.0.0.1:9', http_proxy: 'http://127.0.0.1:9' };
    const { code, stderr } = await startCli(['demo', '--paid', '--once'], { ...SHELL, env }).ended;
    assert.equal(code, EXIT.couldNotRun);
    assert.match(stderr, /the local chain does not answer/);
    assert.deepEqual(readdirSync(TMPDIR), []);
  });

  test('as text, running: the printed exports and line buy one more call, and the printed export contains its events', async () => {
    const cli = startCli(['demo', '--paid'], SHELL);
    await cli.until((stdout) => stdout.includes('Ctrl-C stops it'));
    const printed = cli.stdout();
    assert.equal(printed.match(/^ {2}✓ /gm)?.length, 9 + FACTS.length);
    assert.doesNotMatch(printed, /✗|\u001b|undefined/);
    assert.match(printed, /\n {2}✓ exactly 3000 units were transferred from the buyer to the payee/);
    const env: Record<string, string> = Object.fromEntries(
      [...printed.matchAll(/^export ([A-Z_]+)=(\S+)$/gm)].map(([, name = '', value = '']) => [name, value]),
    );
    const names = [
      'BALANCE_USD',
      'BUYER_PRIVATE_KEY',
      'PAY_TO',
      'RELAY',
      'RELAY_BUYER_PRIVATE_KEY',
      'TARGET',
    ];
    assert.deepEqual(Object.keys(env).sort(), names);
    // 1,000 calls, of which the demo has bought one.
    assert.equal(Number(env.BALANCE_USD), 999 * 0.003);
    assert.equal(env.BUYER_PRIVATE_KEY, env.RELAY_BUYER_PRIVATE_KEY);
    const keys = new Set(printed.match(/(?<==)0x[0-9a-f]{64}\b/g));
    assert.deepEqual([...keys], [env.BUYER_PRIVATE_KEY]);
    const [, line = ''] = /^npx bun src\/cli\/relay\.ts (pay .+)$/m.exec(printed) ?? [];
    const args = line.split(' ').map((word) => word.replace(/^"\$(\w+)"$/, (_, name) => env[name] ?? ''));
    const bought = await startCli([...args, '--json'], { env }).ended;
    assert.equal(bought.code, 0, bought.stdout + bought.stderr);
    const again = await startCli([...args, '--json'], { env }).ended;
    assert.equal(JSON.parse(again.stdout).idempotentReplay, true);
    const [, dataDir = '', out = ''] =
      /DATA_DIR=(\S+) npx bun src\/cli\/relay\.ts export --out (\S+)\n/.exec(printed) ?? [];
    const exported = await startCli(['export', '--out', out], { env: { DATA_DIR: dataDir } }).ended;
    assert.equal(exported.code, 0, exported.stderr);
    assert.ok(readFileSync(out, 'utf8').includes(JSON.parse(bought.stdout).job.id));
    cli.signal('SIGINT');
    assert.equal((await cli.ended).code, 0);
    assert.deepEqual(readdirSync(TMPDIR), []);
  });
});

describe('relay demo --paid where no chain can be started', () => {
  // Bun has no permissions.
  if (runtimeName === 'deno')
    test('without permission to start a program: exit 2, and the error names the permission', async () => {
      const { code, stdout, stderr } = await startCli(['demo', '--paid', '--once', '--json'], {
        env: { TMPDIR },
      }).ended;
      assert.deepEqual([code, stdout], [EXIT.couldNotRun, '']);
      assert.match(stderr, /^relay: [^\n]*--allow-run[^\n]*\n$/);
      assert.deepEqual(readdirSync(TMPDIR), []);
    });

  test('without a chain for this platform it cannot run, reports why, and starts nothing', async () => {
    const undo: (() => Promise<void>)[] = [];
    await assert.rejects(
      startPaidWorld(undo, () => null),
      (error: unknown) =>
        error instanceof Error &&
        exitOf(error) === EXIT.couldNotRun &&
        /needs a local chain, and @foundry-rs\/anvil is not installed for \w+ \w+: run it in a clone/.test(
          error.message,
        ),
    );
    assert.deepEqual(undo, []);
  });
});
