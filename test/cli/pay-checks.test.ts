// relay pay: checks before it signs and after it has paid, and the cases in which it cannot run.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Command } from 'commander';
import { EXIT, exitOf } from '#src/cli/exit.ts';
import { addPay } from '#src/cli/pay.ts';
import { runCli } from '#test/support/cli.ts';
import { ALL_GOOD, isPaid, PAY_TO, payWorld } from '#test/support/pay-world.ts';
import { type FrontAnswer, withHeader } from '#test/support/relay-front.ts';
import { makeWorld } from '#test/support/service-world.ts';

const STRANGER = '0x2222222222222222222222222222222222222222';
const EXECUTE = '/api/execute/webhook';
const it = payWorld();
const { newKey, scene, run, buy, books } = it;

type Bill = {
  resource: { url: string };
  accepts: { [name: string]: unknown }[];
};
/** Changes the only payment requirement. */
const term =
  (changes: Record<string, unknown>) =>
  (bill: Bill): Bill => ({ ...bill, accepts: bill.accepts.map((accept) => ({ ...accept, ...changes })) });

describe('relay pay: the offer is checked before anything is signed', () => {
  const bad: readonly (readonly [what: string, change: (bill: Bill) => unknown, ...findings: string[]])[] = [
    ['a higher price', term({ amount: '3001' }), 'price'],
    ['an invalid price', term({ amount: '-1' }), 'price'],
    ['another payee', term({ payTo: STRANGER }), 'pay_to'],
    ['another asset', term({ asset: STRANGER }), 'asset'],
    ['another network', term({ network: 'eip155:84532' }), 'network'],
    ['another scheme', term({ scheme: 'upto' }), 'network'],
    [
      'another resource',
      (bill) => ({ ...bill, resource: { ...bill.resource, url: `https://evil.example${EXECUTE}` } }),
      'resource',
    ],
  ];
  for (const [what, change, ...findings] of bad) {
    test(`${what}: not paid`, async () => {
      const book = books();
      it.front.rule(async ({ path }, forward) => {
        const answer = await forward();
        return path === EXECUTE ? withHeader(answer, 'payment-required', change as never) : answer;
      });
      const { outcome, policy } = await buy('/never');
      it.front.rule(null);
      assert.equal(outcome, 'policy_refused');
      const failed = policy.filter(({ ok }) => !ok).map(({ name }) => name);
      assert.deepEqual(failed.sort(), [...findings].sort());
      assert.deepEqual([book.payments().length, book.charges()], [0, 0]);
    });
  }

  test('a lower --max-price than what is asked: not paid, exit 1', async () => {
    const { code, stdout } = await run(scene('/cheap', '--max-price', '0.002999'));
    const { ok, outcome, policy } = JSON.parse(stdout);
    assert.deepEqual([code, ok, outcome], [1, false, 'policy_refused']);
    assert.deepEqual(
      policy.filter((finding: { ok: boolean }) => !finding.ok).map(({ name }: { name: string }) => name),
      ['price'],
    );
  });

  test('without --pay-to no one is paid, and the offered payee is printed', async () => {
    const book = books();
    const args = ['pay', it.world.target.url('/whom'), '--relay', it.front.url];
    const { code, stdout } = await runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: newKey() } });
    assert.equal(code, 1);
    assert.match(
      stdout,
      new RegExp(`No one is paid without --pay-to. To pay ${PAY_TO}, name it with --pay-to`),
    );
    assert.equal(book.payments().length, 0);
  });

  test('--dry-run without --pay-to: nothing but the payee is missing, exit 0', async () => {
    const args = ['pay', it.world.target.url('/dry'), '--relay', it.front.url, '--dry-run'];
    const { code, stdout } = await runCli(args);
    assert.equal(code, 0, stdout);
    assert.match(
      stdout,
      /No one is paid without --pay-to.*\n\nThe offer is within your limits\. Nothing was paid\.\n$/,
    );
    const json = await runCli([...args, '--json']);
    const { ok, outcome, policy } = JSON.parse(json.stdout);
    assert.deepEqual([json.code, ok, outcome], [0, true, 'not_paid']);
    const failed = policy.filter((finding: { ok: boolean }) => !finding.ok);
    assert.deepEqual(
      failed.map(({ name }: { name: string }) => name),
      ['pay_to'],
    );
  });

  test('--dry-run: needs no key, pays nothing, executes nothing', async () => {
    const book = books();
    const looked = scene('/dry', '--dry-run');
    const { code, stdout, stderr } = await runCli(looked.args);
    const { ok, outcome, terms } = JSON.parse(stdout);
    assert.deepEqual([code, stderr, ok, outcome], [0, '', true, 'not_paid']);
    assert.deepEqual([terms.amount, terms.payTo], ['3000', PAY_TO]);
    assert.deepEqual([book.payments().length, book.calls(looked).length], [0, 0]);
  });
});

describe('relay pay: the answer is checked', () => {
  const executionOf = ({ body }: FrontAnswer) => JSON.parse(body);
  const withBody = (answer: FrontAnswer, execution: object): FrontAnswer => ({
    ...answer,
    body: JSON.stringify(execution),
  });
  /** The answer of an earlier purchase: valid, but of another purchase. */
  let earlier: FrontAnswer | undefined;
  const tamperings: readonly (readonly [
    string,
    (answer: FrontAnswer) => FrontAnswer,
    ...(keyof typeof ALL_GOOD)[],
  ])[] = [
    [
      'a receipt with a broken signature',
      (answer) => {
        const { receipt, ...rest } = executionOf(answer);
        const jws = receipt.jws.replace(/.{8}$/, 'AAAAAAAA');
        return withBody(answer, { ...rest, receipt: { ...receipt, jws } });
      },
      'receipt_verified_offline',
    ],
    [
      'the receipt of another purchase',
      (answer) => {
        const { job, receipt, ...rest } = executionOf(answer);
        const other = executionOf(earlier ?? answer);
        return withBody(answer, { ...rest, job: other.job, receipt: other.receipt });
      },
      'receipt_names_payment',
      'receipt_binds_request',
    ],
    [
      'no disclosures',
      (answer) => withBody(answer, { ...executionOf(answer), disclosures: [] }),
      'receipt_binds_request',
    ],
    [
      'no payment header',
      (answer) => ({ ...answer, headers: { ...answer.headers, 'payment-response': '' } }),
      'receipt_names_payment',
    ],
    [
      'another transaction in the payment header',
      (answer) =>
        withHeader(answer, 'payment-response', (value: object) => ({
          ...value,
          transaction: `0x${'e'.repeat(64)}`,
        })),
      'receipt_names_payment',
    ],
    [
      'another payer in the payment header',
      (answer) => withHeader(answer, 'payment-response', (value: object) => ({ ...value, payer: STRANGER })),
      'receipt_names_payment',
    ],
  ];
  for (const [what, change, ...failing] of tamperings) {
    test(`${what}: the failing facts are named`, async () => {
      it.front.rule(async ({ headers }, forward) => {
        const answer = await forward();
        if (!isPaid(headers)) return answer;
        const changed = change(answer);
        earlier = answer;
        return changed;
      });
      const { outcome, evidence } = await buy(`/checked-${failing.length}-${what.length}`);
      it.front.rule(null);
      assert.deepEqual([outcome, evidence?.ok], ['delivered', false]);
      const failed = evidence?.facts.filter(({ ok }) => !ok).map(({ name }) => name);
      assert.deepEqual(failed?.sort(), [...failing].sort());
      assert.equal(evidence?.facts.length, Object.keys(ALL_GOOD).length);
    });
  }
});

describe('relay pay: keys that cannot be fetched after the payment', () => {
  test('the answer is shown, unverified: exit 1', async () => {
    const bought = scene('/keyless');
    const book = books();
    let paid = false;
    it.front.rule(async ({ headers, path }, forward) => {
      paid ||= isPaid(headers);
      return paid && path === '/.well-known/jwks.json' ? null : forward();
    });
    const result = await run(bought);
    it.front.rule(null);
    const { outcome, receipt, verification } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, outcome, verification.ok], [1, 'delivered', false]);
    assert.match(receipt.id, /^rcpt_/);
    assert.deepEqual([book.charges(), book.calls(bought).length], [1, 1]);
  });
});

describe('relay pay: cannot run', () => {
  test('a relay that requires no payment executes nothing when it is asked for its offer', async () => {
    const free = await makeWorld();
    const service = await free.start();
    const args = ['pay', free.target.url('/free'), '--relay', service.url, '--pay-to', PAY_TO];
    const { code, stdout, stderr } = await runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: newKey() } });
    await free.end();
    assert.deepEqual([code, stdout, free.target.requests.length], [2, '', 0]);
    assert.match(stderr, /answered 400 instead of 402/);
  });

  const TARGET = 'https://target.example/hook';
  const RELAY = 'https://relay.example';
  const cases: readonly (readonly string[])[] = [
    [TARGET],
    [TARGET, '--relay', 'relay.example'],
    [TARGET, '--relay', 'http://relay.example'],
    [TARGET, '--relay', `${RELAY}/path`],
    ['http://target.example', '--relay', RELAY],
    ['nonsense', '--relay', RELAY],
    [TARGET, '--relay', RELAY, '--max-price', 'much'],
    [TARGET, '--relay', RELAY, '--pay-to', '0x12'],
    [TARGET, '--relay', RELAY, '--body', '{'],
    [TARGET, '--relay', RELAY, '--body', '1', '--body-file', 'b'],
    [TARGET, '--relay', RELAY, '--body-file', '/nowhere/b'],
    [TARGET, '--relay', RELAY, '--header', 'nonsense'],
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
    const { code, stdout, stderr } = await runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: newKey() } });
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^relay: http:\/\/127\.0\.0\.1:1[^\n]+ cannot be reached\n$/);
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
