// relay pay against the real service and a facilitator's double: what it pays, what it refuses to pay, and that it never
// pays twice. A front between the two changes what a test tells it to.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type CliResult, runCli, startCli } from '#test/support/cli.ts';
import {
  type FacilitatorDouble,
  facilitatorDouble,
  settledAnswerLost,
  unsettled,
} from '#test/support/facilitator-double.ts';
import { type FrontAnswer, type RelayFront, startRelayFront, withHeader } from '#test/support/relay-front.ts';
import { waitFor } from '#test/support/service.ts';
import { makeWorld, type World } from '#test/support/service-world.ts';

const PAY_TO = '0x1111111111111111111111111111111111111111';
const STRANGER = '0x2222222222222222222222222222222222222222';
const EXECUTE = '/api/execute/webhook';

let world: World;
let facilitator: FacilitatorDouble;
let front: RelayFront;
let payers = 0;

before(async () => {
  [world, facilitator, front] = await Promise.all([
    makeWorld({ handler: ({ path }) => ({ status: path === '/fails' ? 500 : 200 }) }),
    facilitatorDouble(),
    startRelayFront(),
  ]);
  const service = await world.start({
    PUBLIC_BASE_URL: front.url,
    X402_ENABLED: 'true',
    X402_PAY_TO: PAY_TO,
    X402_FACILITATOR_URL: facilitator.url,
  });
  front.behind(service.url);
});
after(async () => {
  await world?.end();
  await facilitator?.close();
  await front?.close();
});

/** A wallet of its own for each purchase. */
const newKey = () => `0x${'1f'.repeat(31)}${(++payers).toString(16).padStart(2, '0')}`;

type Scene = { readonly path: string; readonly key: string; readonly args: readonly string[] };
function scene(path: string, ...more: readonly string[]): Scene {
  const args = ['pay', world.target.url(path), '--relay', front.url, '--pay-to', PAY_TO, '--json', ...more];
  return { path, key: newKey(), args };
}
const run = ({ args, key }: Scene) => runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: key } });

/** What happened in the world since a moment. */
function books() {
  const [settled, paid] = [facilitator.ledger.size, front.payments.length];
  return {
    charges: () => facilitator.ledger.size - settled,
    payments: () => front.payments.slice(paid),
    calls: ({ path }: Scene) => world.target.requests.filter((request) => request.path === path),
  };
}
const factsOf = ({ stdout }: CliResult): Record<string, boolean> =>
  Object.fromEntries(
    JSON.parse(stdout).facts.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]),
  );
const ALL_GOOD = {
  receipt_verified_offline: true,
  receipt_names_payment: true,
  payment_settled: true,
  receipt_binds_request: true,
  payment_receipt_signed: true,
};
const isPaid = (headers: Readonly<Record<string, string>>) => headers['payment-signature'] !== undefined;

describe('relay pay: buys one call', () => {
  test('delivered, charged once, every fact holds; and nothing tells the key', async () => {
    const book = books();
    const body = { order: 4711, total: '12.50' };
    const bought = scene('/good', '--body', JSON.stringify(body), '--header', 'X-Order: 1', '--key', 'k-1');
    const result = await run(bought);
    assert.deepEqual([result.code, result.stderr], [0, '']);
    const { ok, outcome, resumed, job, receipt, settlement, verification } = JSON.parse(result.stdout);
    assert.deepEqual([ok, outcome, resumed, job.status], [true, 'delivered', false, 'succeeded']);
    assert.deepEqual([verification.ok, verification.receiptId], [true, receipt.id]);
    assert.match(settlement.transaction, /^0x[0-9a-f]{64}$/);
    assert.deepEqual(factsOf(result), ALL_GOOD);
    const [request, ...others] = book.calls(bought);
    assert.deepEqual([others.length, book.charges(), book.payments().length], [0, 1, 1]);
    assert.deepEqual(JSON.parse(Buffer.from(request?.body ?? '').toString()), body);
    assert.equal(request?.headers['x-order'], '1');
    assert.ok(!result.stdout.includes(bought.key.slice(2)));
  });

  test('the method and a body from a file', async () => {
    const file = join(world.folder, 'body.json');
    writeFileSync(file, '[1,2]');
    const bought = scene('/by-file', '--method', 'put', '--body-file', file);
    const book = books();
    assert.equal((await run(bought)).code, 0);
    const [request] = book.calls(bought);
    assert.deepEqual([request?.method, Buffer.from(request?.body ?? '').toString()], ['PUT', '[1,2]']);
  });

  test('in words: the terms, the payment, every mark good', async () => {
    const bought = scene('/words');
    const args = bought.args.filter((arg) => arg !== '--json');
    const { code, stdout, stderr } = await run({ ...bought, args });
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout.match(/^ {2}✓ /gm)?.length, 8 + 7 + 5);
    assert.doesNotMatch(stdout, /✗|\u001b|undefined/);
    assert.match(stdout, /\nDelivered\.\n$/);
  });

  test('a failed target is paid for, verified, and exit 1', async () => {
    const bought = scene('/fails');
    const book = books();
    const result = await run(bought);
    const { ok, outcome, job } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, ok, outcome, job.responseStatus], [1, false, 'target_failed', 500]);
    const { payment_receipt_signed: _, ...rest } = ALL_GOOD;
    assert.deepEqual(factsOf(result), rest);
    assert.equal(book.charges(), 1);
  });
});

describe('relay pay: never pays twice', () => {
  test('answers that were lost: the same payment is presented again, and replays', async () => {
    const bought = scene('/lost');
    const book = books();
    let lost = 0;
    front.rule(async ({ headers }, forward) => {
      const answer = await forward();
      return isPaid(headers) && lost++ < 2 ? null : answer;
    });
    const result = await run(bought);
    front.rule(null);
    assert.equal(result.code, 0, result.stdout + result.stderr);
    assert.equal(JSON.parse(result.stdout).idempotentReplay, true);
    assert.deepEqual(factsOf(result), ALL_GOOD);
    assert.deepEqual([book.payments().length, new Set(book.payments()).size], [3, 1]);
    assert.deepEqual([book.charges(), book.calls(bought).length], [1, 1]);
    assert.match(result.stderr, /no answer; the same payment is presented again in \d+ s/);
  });

  test('503 of a settlement of unknown fate: waits as told, with the same payment', async () => {
    const bought = scene('/unknown');
    const book = books();
    facilitator.scriptSettle(settledAnswerLost);
    const result = await run(bought);
    assert.equal(result.code, 0, result.stdout + result.stderr);
    assert.match(result.stderr, /503 payment_unconfirmed; the same payment is presented again in 5 s/);
    assert.deepEqual(factsOf(result), ALL_GOOD);
    assert.equal(JSON.parse(result.stdout).settlement.transaction, null);
    assert.equal(new Set(book.payments()).size, 1);
    assert.deepEqual([book.charges(), book.calls(bought).length], [1, 1]);
  });

  for (const [status, body] of [
    [429, { error: { code: 'too_many_in_flight', message: 'slow down' } }],
    [409, { error: { code: 'idempotency_in_progress', message: 'running' } }],
    [502, 'a proxy speaks'],
    [504, ''],
    [200, ''],
    [404, 'no such page'],
  ] as const) {
    test(`${status} without a result is waited out`, async () => {
      const bought = scene(`/passing-${status}`);
      const book = books();
      let times = 0;
      front.rule(async ({ headers }, forward) =>
        isPaid(headers) && times++ === 0
          ? { status, headers: { 'retry-after': '0' }, body: JSON.stringify(body) }
          : forward(),
      );
      const result = await run(bought);
      front.rule(null);
      assert.equal(result.code, 0, result.stdout + result.stderr);
      assert.deepEqual([book.payments().length, book.charges()], [2, 1]);
      assert.equal(new Set(book.payments()).size, 1);
    });
  }

  test('a final no ends it: one payment, not charged, exit 1', async () => {
    const bought = scene('/refused');
    const book = books();
    facilitator.scriptSettle(unsettled('insufficient_funds'));
    const result = await run(bought);
    const { outcome, problem } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, outcome, problem.code], [1, 'relay_refused', 'payment_required']);
    assert.match(problem.message, /insufficient_funds/);
    assert.deepEqual([book.payments().length, book.charges(), book.calls(bought).length], [1, 0, 0]);
  });

  test('a redirect is not followed: the payment goes to no other address', async () => {
    const bought = scene('/redirected');
    const book = books();
    const elsewhere = await startRelayFront();
    front.rule(async ({ headers }, forward) =>
      isPaid(headers)
        ? { status: 307, headers: { location: `${elsewhere.url}${EXECUTE}` }, body: '' }
        : forward(),
    );
    const result = await run(bought);
    front.rule(null);
    await elsewhere.close();
    const { outcome, payment } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, outcome], [1, 'unfinished']);
    // It may be spent for all that is known: whoever made it gets it back.
    assert.deepEqual(Object.values(payment.header), book.payments());
    assert.deepEqual([book.payments().length, elsewhere.payments.length], [1, 0]);
  });
});

describe('relay pay --save', () => {
  test('a buyer that is killed after it has sent comes back for what it bought', async () => {
    const file = join(world.folder, 'purchase.json');
    const bought = scene('/crash', '--body', '{"a":1}', '--save', file);
    const book = books();
    let held = false;
    front.rule(async ({ headers }, forward) => {
      const answer = await forward();
      if (!isPaid(headers)) return answer;
      held = true;
      return new Promise<FrontAnswer>(() => undefined);
    });
    const first = startCli(bought.args, { env: { RELAY_BUYER_PRIVATE_KEY: bought.key } });
    await waitFor('the payment at the relay', () => held);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    first.signal('SIGKILL');
    await first.ended;
    front.rule(null);

    const result = await run(bought);
    const { resumed, idempotentReplay, outcome } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, resumed, idempotentReplay, outcome], [0, true, true, 'delivered']);
    assert.deepEqual(factsOf(result), ALL_GOOD);
    assert.deepEqual([book.payments().length, new Set(book.payments()).size], [2, 1]);
    assert.deepEqual([book.charges(), book.calls(bought).length], [1, 1]);
    assert.ok(!readFileSync(file, 'utf8').includes(bought.key.slice(2)));
    assert.deepEqual(
      readdirSync(world.folder).filter((name) => name.endsWith('.part')),
      [],
    );

    const other = await run({ ...bought, args: [...scene('/crash', '--save', file).args] });
    assert.deepEqual([other.code, other.stdout], [2, '']);
    assert.match(other.stderr, /holds the purchase of another call/);
    assert.equal(book.payments().length, 2);
  });

  test('a file that holds something else, or cannot be made, is told before anything is paid', async () => {
    const book = books();
    const foreign = join(world.folder, 'foreign');
    for (const content of ['', '{}', 'null', '{"format":"relay-purchase/1"}']) {
      writeFileSync(foreign, content);
      const { code, stderr } = await run(scene('/foreign', '--save', foreign));
      assert.equal(code, 2);
      assert.match(stderr, /is not a purchase/);
      assert.equal(readFileSync(foreign, 'utf8'), content);
    }
    const nowhere = join(world.folder, 'no-such-folder', 'file');
    const { code, stderr } = await run(scene('/nowhere', '--save', nowhere));
    assert.equal(code, 2);
    assert.match(stderr, /cannot be written \(ENOENT\): nothing was paid/);
    assert.equal(existsSync(nowhere), false);
    assert.deepEqual(book.payments(), []);
  });
});

type Bill = {
  resource: { url: string };
  accepts: { [name: string]: unknown; extra: Record<string, unknown> }[];
  extensions: Record<string, { info: { offers: { signature: string }[] } }>;
};
/** The first and only way to pay, changed. */
const term =
  (changes: Record<string, unknown>) =>
  (bill: Bill): Bill => ({ ...bill, accepts: bill.accepts.map((accept) => ({ ...accept, ...changes })) });
const extra = (changes: Record<string, unknown>) => (bill: Bill) =>
  term({ extra: { ...bill.accepts[0]?.extra, ...changes } })(bill);
const offers = (change: (signature: string) => string) => (bill: Bill) => {
  const held = bill.extensions['offer-receipt'];
  for (const offer of held?.info.offers ?? []) offer.signature = change(offer.signature);
  return bill;
};
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('relay pay: the offer is judged before anything is signed', () => {
  const bad: readonly (readonly [what: string, change: (bill: Bill) => unknown, ...findings: string[]])[] = [
    ['a higher price', term({ amount: '3001' }), 'price', 'signed_offer'],
    ['a price that is none', term({ amount: '-1' }), 'price', 'signed_offer'],
    ['another payee', term({ payTo: STRANGER }), 'pay_to', 'signed_offer'],
    ['another asset', term({ asset: STRANGER }), 'asset', 'signed_offer'],
    ['another name of the asset', extra({ name: 'Other Coin' }), 'asset'],
    ['another kind of signature', extra({ assetTransferMethod: 'permit2' }), 'asset'],
    ['another network', term({ network: 'eip155:84532' }), 'network', 'scheme'],
    ['another scheme', term({ scheme: 'upto' }), 'scheme'],
    ['a long window', term({ maxTimeoutSeconds: 301 }), 'window'],
    [
      'another resource',
      (bill) => ({ ...bill, resource: { ...bill.resource, url: `https://evil.example${EXECUTE}` } }),
      'resource',
      'signed_offer',
    ],
    ['no signed offer', (bill) => ({ ...bill, extensions: {} }), 'signed_offer'],
    ['a broken signature', offers((jws) => jws.replace(/.{8}$/, 'AAAAAAAA')), 'signed_offer'],
    [
      'an offer of another signer',
      offers((jws) =>
        [part({ alg: 'EdDSA', kid: 'did:web:evil.example#k' }), ...jws.split('.').slice(1)].join('.'),
      ),
      'signed_offer',
    ],
    [
      'an unsigned offer',
      offers((jws) => [part({ alg: 'none' }), jws.split('.')[1], ''].join('.')),
      'signed_offer',
    ],
    [
      'offers that are none',
      (bill) => ({ ...bill, extensions: { 'offer-receipt': { info: { offers: [1] } } } }),
      'signed_offer',
    ],
  ];
  for (const [what, change, ...findings] of bad) {
    test(`${what}: not paid, exit 1`, async () => {
      const book = books();
      front.rule(async ({ path }, forward) => {
        const answer = await forward();
        return path === EXECUTE ? withHeader(answer, 'payment-required', change as never) : answer;
      });
      const { code, stdout } = await run(scene('/never'));
      front.rule(null);
      const { ok, outcome, policy } = JSON.parse(stdout);
      assert.deepEqual([code, ok, outcome], [1, false, 'policy_refused']);
      const failed = policy.filter((finding: { ok: boolean }) => !finding.ok);
      assert.deepEqual(failed.map(({ name }: { name: string }) => name).sort(), [...findings].sort());
      assert.deepEqual([book.payments().length, book.charges()], [0, 0]);
    });
  }

  test('a lower --max-price than what is asked', async () => {
    const { code, stdout } = await run(scene('/cheap', '--max-price', '0.002999'));
    const { outcome, policy } = JSON.parse(stdout);
    assert.deepEqual([code, outcome], [1, 'policy_refused']);
    assert.deepEqual(
      policy.filter((finding: { ok: boolean }) => !finding.ok).map(({ name }: { name: string }) => name),
      ['price'],
    );
  });

  test('without --pay-to nobody is paid, and the payee that was offered is told', async () => {
    const book = books();
    const args = ['pay', world.target.url('/whom'), '--relay', front.url];
    const { code, stdout } = await runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: newKey() } });
    assert.equal(code, 1);
    assert.match(stdout, new RegExp(`Nobody is paid without --pay-to. If ${PAY_TO} is whom you mean`));
    assert.equal(book.payments().length, 0);
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

describe('relay pay: what came is judged', () => {
  const executionOf = ({ body }: FrontAnswer) => JSON.parse(body);
  const told = (answer: FrontAnswer, execution: object): FrontAnswer => ({
    ...answer,
    body: JSON.stringify(execution),
  });
  /** Of an earlier purchase: good in itself, and another one's. */
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
        return told(answer, { ...rest, receipt: { ...receipt, jws } });
      },
      'receipt_verified_offline',
    ],
    [
      'the receipt of another purchase',
      (answer) => {
        const { job, receipt, ...rest } = executionOf(answer);
        const other = executionOf(earlier ?? answer);
        return told(answer, { ...rest, job: other.job, receipt: other.receipt });
      },
      'receipt_names_payment',
      'receipt_binds_request',
    ],
    [
      'no disclosures',
      (answer) => told(answer, { ...executionOf(answer), disclosures: [] }),
      'receipt_binds_request',
    ],
    [
      'no payment header',
      (answer) => ({ ...answer, headers: { ...answer.headers, 'payment-response': '' } }),
      'receipt_names_payment',
      'payment_settled',
      'payment_receipt_signed',
    ],
    [
      'another transaction in the payment header',
      (answer) =>
        withHeader(answer, 'payment-response', (value: object) => ({
          ...value,
          transaction: `0x${'e'.repeat(64)}`,
        })),
      'receipt_names_payment',
      'payment_receipt_signed',
    ],
    [
      'another payer in the payment header',
      (answer) => withHeader(answer, 'payment-response', (value: object) => ({ ...value, payer: STRANGER })),
      'payment_settled',
    ],
    [
      'no signed payment receipt',
      (answer) => withHeader(answer, 'payment-response', (value: object) => ({ ...value, extensions: {} })),
      'payment_receipt_signed',
    ],
  ];
  for (const [what, change, ...failing] of tamperings) {
    test(`${what}: exit 1, and told`, async () => {
      front.rule(async ({ headers }, forward) => {
        const answer = await forward();
        if (!isPaid(headers)) return answer;
        const changed = change(answer);
        earlier = answer;
        return changed;
      });
      const result = await run(scene(`/judged-${failing.length}-${what.length}`));
      front.rule(null);
      assert.deepEqual([result.code, JSON.parse(result.stdout).outcome], [1, 'delivered'], result.stderr);
      const expected = Object.fromEntries(Object.keys(ALL_GOOD).map((name) => [name, true]));
      for (const name of failing) expected[name] = false;
      assert.deepEqual(factsOf(result), expected);
    });
  }
});

describe('relay pay: keys that are gone after the payment', () => {
  test('what came is shown all the same, unverified: exit 1', async () => {
    const bought = scene('/keyless');
    const book = books();
    let paid = false;
    front.rule(async ({ headers, path }, forward) => {
      paid ||= isPaid(headers);
      return paid && path === '/.well-known/jwks.json' ? null : forward();
    });
    const result = await run(bought);
    front.rule(null);
    const { outcome, receipt, verification } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, outcome, verification.ok], [1, 'delivered', false]);
    assert.match(receipt.id, /^rcpt_/);
    assert.deepEqual([book.charges(), book.calls(bought).length], [1, 1]);
  });
});

describe('relay pay: cannot run', () => {
  test('a relay that asks for no payment executes nothing for the asking', async () => {
    const free = await makeWorld();
    const service = await free.start();
    const args = ['pay', free.target.url('/free'), '--relay', service.url, '--pay-to', PAY_TO];
    const { code, stdout, stderr } = await runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: newKey() } });
    await free.end();
    assert.deepEqual([code, stdout, free.target.requests.length], [2, '', 0]);
    assert.match(stderr, /answered 400 where 402 was due/);
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
    [TARGET, '--relay', 'http://127.0.0.1:1'],
  ];
  for (const args of cases) {
    test(`pay ${args.join(' ')}: exit 2 and one line`, async () => {
      const { code, stdout, stderr } = await runCli(['pay', ...args], {
        env: { RELAY_BUYER_PRIVATE_KEY: newKey() },
      });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /^relay: [^\n]+\n$/);
    });
  }

  test('no key, or one that is none: told by the variable, never by its value', async () => {
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
