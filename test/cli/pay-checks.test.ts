// relay pay in front of a relay that lies: exit 1 and one line that names what differs; and the cases in which it cannot
// run. What is compared, and all lies, are in test/buyer.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Command } from 'commander';
import { EXIT, exitOf } from '#src/cli/exit.ts';
import { addPay } from '#src/cli/pay.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { runCli } from '#test/support/process/cli.ts';
import {
  changed,
  type Lies,
  type LyingRelay,
  lyingRelay,
  PAY_TO,
  relayServer,
} from '#test/support/witness/lying-relay.ts';
import { makeWorld } from '#test/support/world/service-world.ts';

const KEY = `0x${'c3'.repeat(32)}`;
const TARGET = 'https://target.example/hook';
const RELAY = 'https://relay.example';
const RUNS = ['--relay', RELAY, '--runs', '2', '--max-usd', '1', '--dry-run'];

const folder = mkdtempSync(join(tmpdir(), 'relay-pay-'));
let relay: LyingRelay & { close(): Promise<void> };
before(async () => {
  relay = await relayServer((origin) => lyingRelay(origin, Date.now));
});
after(async () => {
  await relay?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Exit code, output, and how many payments were presented. */
async function pays(lies: Lies, ...more: readonly string[]) {
  relay.lie(lies);
  const presented = relay.presented.length;
  const args = ['pay', TARGET, '--relay', relay.origin, '--pay-to', PAY_TO, ...more];
  const result = await runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: KEY } });
  return { ...result, presented: relay.presented.length - presented };
}

describe('relay pay: a relay that lies', () => {
  const otherHash: Lies = { payload: (payload) => changed(payload, 'payment.payloadHash', 'e'.repeat(64)) };

  test('as text: nothing is called delivered, and the last line names the member', async () => {
    const { code, stdout, presented } = await pays(otherHash, '--key', 'k-1');
    assert.deepEqual([code, presented], [1, 1]);
    assert.match(
      stdout,
      /\nNOT verified as your purchase: receipt\.payment\.payloadHash: expected [0-9a-f]{64}, received e{64}\n$/,
    );
    assert.match(stdout, /\n {2}✗ not as expected: receipt\.payment\.payloadHash\n/);
    assert.match(
      stdout,
      /\n {2}The signed payment can be charged until 2\d{3}-.*\n {2}on the chain whether its nonce 0x/,
    );
    assert.doesNotMatch(stdout, /Delivered|undefined/);
  });

  test('as JSON: the member is in error, and in one line on standard error', async () => {
    const { code, stdout, stderr } = await pays(otherHash, '--key', 'k-2', '--json');
    const { ok, outcome, error, payment } = JSON.parse(stdout);
    assert.deepEqual(
      [code, ok, outcome, error],
      [
        1,
        false,
        'unverified',
        { member: 'receipt.payment.payloadHash', expected: payment.payloadHash, actual: 'e'.repeat(64) },
      ],
    );
    assert.match(stderr, /^relay: receipt\.payment\.payloadHash: expected [0-9a-f]{64}, received e{64}\n$/);
    assert.equal(payment.header, undefined);
  });

  test('text of the relay cannot control the terminal', async () => {
    const lie: Lies = {
      payload: (payload) => changed(payload, 'payment.payTo', '\u001b[2J\nDelivered.\u202e'),
    };
    const { code, stdout } = await pays(lie, '--key', 'k-3');
    assert.equal(code, 1);
    assert.doesNotMatch(stdout, /\u001b|\u202e|\nDelivered/);
  });

  test('--keys pins the signing keys: another key is refused, whatever the relay publishes', async () => {
    const { x, keyId } = testKey();
    const pinned = join(folder, 'pinned.json');
    writeFileSync(pinned, JSON.stringify({ keys: [{ kty: 'OKP', crv: 'Ed25519', kid: keyId, x }] }));
    const refused = await pays({}, '--key', 'k-4', '--keys', pinned);
    assert.deepEqual([refused.code, refused.presented], [1, 1]);
    assert.match(refused.stdout, /NOT verified as your purchase: receipt\.signature_valid: expected/);
    const published = await pays({}, '--key', 'k-5', '--keys', `${relay.origin}/.well-known/jwks.json`);
    assert.equal(published.code, 0, published.stdout);
  });

  test('--allow-host, --max-price: refused before anything is signed, in dollars', async () => {
    const hosts = ['--allow-host', 'other.example', '--allow-host', '*.target.example'];
    const elsewhere = await pays({}, ...hosts);
    assert.deepEqual([elsewhere.code, elsewhere.presented], [1, 0]);
    assert.match(
      elsewhere.stdout,
      /\nNot paid: offer\.target_host: expected other\.example or \*\.target\.example, received target\.example\n$/,
    );
    const dear = await pays({}, '--max-price', '0.0029');
    assert.deepEqual([dear.code, dear.presented], [1, 0]);
    assert.match(dear.stdout, /\nNot paid: offer\.price: expected at most \$0\.0029, received \$0\.003\n$/);
    assert.match(dear.stdout, /\n {2}✗ price {7}\$0\.003, expected at most \$0\.0029\n/);
  });

  test('a damaged ledger: exit 2, what to do, and nothing is paid', async () => {
    const ledger = join(folder, 'damaged.ndjson');
    writeFileSync(ledger, '{"v":1');
    const { code, stdout, stderr, presented } = await pays({}, '--ledger', ledger, '--key', 'k-6');
    assert.deepEqual([code, stdout, presented], [2, '', 0]);
    assert.match(stderr, /^relay: ledger [^\n]*damaged\.ndjson is damaged[^\n]*remove the line[^\n]*\n$/);
  });

  test('an unfinished purchase is draft how to get the result', async () => {
    const lie: Lies = {
      respond: (request, honest) =>
        request.headers.has('payment-signature')
          ? Promise.resolve(new Response('', { status: 307, headers: { location: 'https://evil.example/' } }))
          : honest(),
    };
    const bare = await pays(lie);
    const [, key] = /^relay: idempotency key: (pay-\S+)\n$/.exec(bare.stderr) ?? [];
    assert.equal(bare.code, 1);
    assert.match(
      bare.stdout,
      /\n {2}Only this header returns the result that you paid for: PAYMENT-SIGNATURE: ey/,
    );
    assert.match(bare.stdout, new RegExp(`The same command with --key ${key} signs a second payment`));
    assert.match(bare.stdout, /\nNo final answer, and the payment may be spent: answer: [^\n]*307[^\n]*\n$/);
    const kept = await pays(lie, '--ledger', join(folder, 'kept.ndjson'));
    assert.match(
      kept.stdout,
      /\n {2}Run the same command again with --key pay-\S+: it presents the same payment/,
    );
    assert.doesNotMatch(kept.stdout, /PAYMENT-SIGNATURE/);
  });

  test('without --pay-to no one is paid, and the offered payee is printed', async () => {
    relay.lie({});
    const args = ['pay', TARGET, '--relay', relay.origin];
    const { code, stdout } = await runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: KEY } });
    assert.equal(code, 1);
    assert.match(
      stdout,
      new RegExp(`No one is paid without --pay-to. To pay ${PAY_TO}, name it with --pay-to`),
    );
  });

  test('--dry-run: needs no key and no payee, pays nothing, exit 0', async () => {
    relay.lie({});
    const presented = relay.presented.length;
    const args = ['pay', TARGET, '--relay', relay.origin, '--dry-run'];
    const text = await runCli(args);
    assert.deepEqual([text.code, text.stderr], [0, '']);
    assert.match(
      text.stdout,
      /No one is paid without --pay-to.*\n\nThe offer is within your limits\. Nothing was paid\.\n$/,
    );
    const json = await runCli([...args, '--json']);
    const { ok, outcome, policy, terms } = JSON.parse(json.stdout);
    assert.deepEqual([json.code, ok, outcome], [0, true, 'not_paid']);
    assert.deepEqual([terms.amount, terms.payTo], ['3000', PAY_TO]);
    const failed = policy.filter((finding: { ok: boolean }) => !finding.ok);
    assert.deepEqual(
      failed.map(({ name }: { name: string }) => name),
      ['pay_to'],
    );
    assert.equal(relay.presented.length, presented);
  });
});

/** A file that orders a schedule. */
function orderFile(url = TARGET): string {
  const file = join(folder, 'order.json');
  const schedule = { type: 'once', runAt: new Date(Date.now() + 3_600_000).toISOString() };
  writeFileSync(file, JSON.stringify({ webhook: { url }, schedule }));
  return file;
}

describe('relay pay: cannot run', () => {
  test('a relay that requires no payment executes nothing when it is asked for its offer', async () => {
    const free = await makeWorld();
    const service = await free.start({ SCHEDULES: 'on' });
    const env = { RELAY_BUYER_PRIVATE_KEY: KEY };
    const at = ['--relay', service.url, '--pay-to', PAY_TO];
    const { code, stdout } = await runCli(['pay', free.target.url('/free'), ...at], { env });
    const file = orderFile(free.target.url('/free'));
    const runs = await runCli(['pay', '--schedule', file, '--runs', '1', '--max-usd', '1', ...at], { env });
    await free.end();
    assert.deepEqual([code, free.target.requests.length], [1, 0]);
    assert.match(
      stdout,
      /Not paid: offer: expected 402 with payment requirements of x402 version 2, received 400 invalid_request\n$/,
    );
    assert.equal(runs.code, 1);
    assert.match(
      runs.stdout,
      /Paid for: 0 of 1 runs\. offer: expected 402[^\n]* received 400 invalid_request/,
    );
  });

  const cases: readonly (readonly string[])[] = [
    [TARGET],
    [TARGET, '--relay', 'relay.example'],
    [TARGET, '--relay', 'http://relay.example'],
    [TARGET, '--relay', `${RELAY}/path`],
    ['http://target.example', '--relay', RELAY],
    ['nonsense', '--relay', RELAY],
    [TARGET, '--relay', RELAY, '--max-price', 'much'],
    [TARGET, '--relay', RELAY, '--budget-usd', '1'],
    [TARGET, '--relay', RELAY, '--budget-usd', '-1', '--ledger', 'l'],
    [TARGET, '--relay', RELAY, '--allow-host', 'https://target.example'],
    [TARGET, '--relay', RELAY, '--allow-host', '*'],
    [TARGET, '--relay', RELAY, '--keys', '/nowhere/jwks.json'],
    [TARGET, '--relay', RELAY, '--method', 'GET'],
    [TARGET, '--relay', RELAY, '--pay-to', '0x12'],
    [TARGET, '--relay', RELAY, '--body', '{'],
    [TARGET, '--relay', RELAY, '--body', '1', '--body-file', 'b'],
    [TARGET, '--relay', RELAY, '--body-file', '/nowhere/b'],
    [TARGET, '--relay', RELAY, '--header', 'nonsense'],
    ['--relay', RELAY],
    [TARGET, '--relay', RELAY, '--runs', '2'],
    [TARGET, '--relay', RELAY, '--max-usd', '1'],
    [...RUNS, '--schedule', 'order.json', '--runs', '0'],
    [...RUNS, '--schedule', 'order.json', '--runs', '-1'],
    [...RUNS, '--schedule', 'order.json', '--runs', '101'],
    [...RUNS, '--schedule', 'order.json', '--runs', '1.5'],
    [...RUNS, '--schedule', 'order.json', '--max-usd', '-1'],
    [...RUNS, '--schedule', '/nowhere/order.json'],
    [...RUNS, '--schedule', '-'],
    [...RUNS, '--schedule', 'https://target.example/order.json'],
    [...RUNS, '--schedule', 'package.json'],
    [...RUNS, '--schedule', 'README.md'],
    [...RUNS, '--schedule', 'order.json', TARGET],
    [...RUNS, '--schedule', 'order.json', '--method', 'PUT'],
    ['--schedule', 'order.json', '--relay', RELAY, '--runs', '1', '--dry-run'],
    ['--schedule', 'order.json', '--relay', RELAY, '--max-usd', '1', '--dry-run'],
  ];
  for (const args of cases) {
    test(`pay ${args.join(' ')}: exit 2`, async () => {
      const program = new Command().exitOverride().configureOutput({ outputError: () => undefined });
      addPay(program);
      const run = program.parseAsync(['pay', ...args], { from: 'user' });
      await assert.rejects(run, (error) => exitOf(error) === EXIT.couldNotRun);
    });
  }

  test('a relay that cannot be reached: exit 2 and one line', async () => {
    const args = ['pay', TARGET, '--relay', 'http://127.0.0.1:1', '--key', 'k'];
    const { code, stdout, stderr } = await runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: KEY } });
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^relay: http:\/\/127\.0\.0\.1:1 cannot be reached\n$/);
  });

  test('a missing or invalid key: the error names the variable, never its value', async () => {
    const args = ['pay', TARGET, '--relay', RELAY, '--pay-to', PAY_TO];
    const secret = '0xnot-a-key-but-secret';
    for (const env of [{}, { RELAY_BUYER_PRIVATE_KEY: secret }] as const) {
      const { code, stderr } = await runCli(args, { env });
      assert.equal(code, 2);
      assert.match(stderr, /^relay: [^\n]*RELAY_BUYER_PRIVATE_KEY[^\n]+\n$/);
      assert.ok(!stderr.includes(secret));
    }
  });
});
