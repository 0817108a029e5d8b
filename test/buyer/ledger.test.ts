// The buyer's ledger: recorded before a payment is sent, one payment for an order, a day's sum that holds for all at once,
// and nothing is paid with a file that cannot be trusted.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { openLedger } from '#src/app/buyer.ts';
import { LedgerUnusable } from '#src/buyer/ledger.ts';
import { type Order, purchase } from '#src/buyer/purchase.ts';
import { keyPayer } from '#src/buyer/wallet.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { type Lies, type LyingRelay, lyingRelay, PAY_TO } from '#test/support/witness/lying-relay.ts';
import { manualClock } from '#test/support/world/fakes.ts';

const folder = testFolder('ledger');
let files = 0;
const newPath = () => join(folder, `ledger-${++files}.ndjson`);

const WALLET = `0x${'a1'.repeat(32)}` as const;
const DAY_MS = 86_400_000;
const SECRET_URL = 'https://target.example/hooks/T0KEN';

/** Time passes only for the buyer: waits end at once. */
function world(path = newPath(), budgetMicroUsd: bigint | null = null, from: LyingRelay | null = null) {
  const manual = manualClock();
  // From noon on, so that a test does not run across midnight.
  const noon = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2;
  const clock = {
    now: () => noon + manual.monotonic(),
    monotonic: () => performance.now(),
    sleep: () => new Promise<void>((done) => setTimeout(done, 1)),
  };
  const relay = from ?? lyingRelay('https://relay.example', clock.now);
  const options = { path, secret: Buffer.from(WALLET.slice(2), 'hex'), budgetMicroUsd, clock };
  const wallet = keyPayer(WALLET);
  let signed = 0;
  const payer: typeof wallet = {
    ...wallet,
    async pay(required, recorded) {
      signed++;
      const made = await wallet.pay(required, recorded);
      if (recorded !== null) return made;
      // The stock client reads the machine's clock; this wallet has the buyer's.
      const { maxTimeoutSeconds } = required.accepts[0];
      const validBefore = String(Math.floor(clock.now() / 1000) + maxTimeoutSeconds);
      const { authorization } = made.payload as { authorization: Record<string, string> };
      const lower = Object.fromEntries(
        Object.entries(authorization).map(([name, one]) => [name, one.toLowerCase()]),
      );
      return wallet.pay(required, { ...lower, validBefore } as never);
    },
  };
  const buy = (idempotencyKey: string, change: Partial<Order['request']> = {}) =>
    purchase(
      { send: relay.send, clock, primitives, waiting: () => undefined, ledger: openLedger(options) },
      {
        relay: relay.origin,
        request: { url: SECRET_URL, body: { secret: 'words' }, idempotencyKey, ...change },
        limits: { maxPriceMicroUsd: 3000n, network: 'eip155:8453', payTo: PAY_TO, allowHosts: null },
        payer,
        keys: [relay.key.record],
        repeatable: true,
      },
    );
  const lines = () => readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return { path, relay, buy, lines, signed: () => signed, laterBy: (ms: number) => manual.advance(ms) };
}

const payments = ({ presented }: { readonly presented: readonly string[] }) => new Set(presented).size;

describe('one payment for an order', () => {
  test('the record is on disk before the payment is sent, without signature, URL or body', async () => {
    const { path, relay, buy, lines } = world();
    let recorded = '';
    relay.lie({
      respond(request, honest) {
        if (request.headers.get('PAYMENT-SIGNATURE') !== null) recorded = readFileSync(path, 'utf8');
        return honest();
      },
    });
    const { outcome, payment } = await buy('order-1');
    assert.equal(outcome, 'delivered');
    assert.equal(recorded, `${lines()[0]}\n`);
    const record = JSON.parse(recorded);
    assert.deepEqual(
      [record.n, record.usd, record.key, record.payloadHash],
      [1, '0.003', 'order-1', payment?.payloadHash],
    );
    const header = Buffer.from(relay.presented[0] ?? '', 'base64').toString();
    const { signature } = JSON.parse(header).payload;
    for (const secret of [
      signature,
      signature.slice(2, 34),
      'T0KEN',
      'target.example',
      'words',
      WALLET.slice(2),
    ])
      assert.ok(!recorded.includes(secret), secret);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  test('a repeat presents the same payment, without asking for an offer, and accepts only its receipt', async () => {
    const { relay, buy, lines, laterBy } = world();
    assert.equal((await buy('order-1')).outcome, 'delivered');
    laterBy(3 * DAY_MS);
    relay.lie({ offer: () => 'the price has changed' });
    const again = await buy('order-1');
    assert.deepEqual([again.outcome, again.error], ['delivered', null]);
    const { execution, earlierPayment } = again.evidence ?? {};
    assert.deepEqual([execution?.idempotentReplay, earlierPayment], [true, false]);
    assert.deepEqual([relay.presented.length, payments(relay), lines().length], [2, 1, 1]);
    relay.lie({
      payload: (payload) => ({ ...payload, iat: payload.iat + 3 * 86_400, payment: otherHash(payload) }),
    });
    assert.equal((await buy('order-1')).error?.member, 'receipt.payment.payloadHash');
  });
  const otherHash = ({ payment }: { readonly payment: object | null }) => ({
    ...payment,
    payloadHash: 'e'.repeat(64),
  });

  test('with a ledger, the result of a payment that is not in it is not accepted', async () => {
    const { relay, buy } = world();
    assert.equal((await buy('order-1')).outcome, 'delivered');
    const other = world(newPath(), null, relay);
    for (const _ of [1, 2])
      assert.equal((await other.buy('order-1')).error?.member, 'receipt.payment.payloadHash');
    assert.equal(payments(relay), 2);
  });

  test('a record that was changed is not signed and sent', async () => {
    const { path, relay, buy, lines } = world();
    await buy('order-1');
    const [line = ''] = lines();
    const record = JSON.parse(line);
    const presented = relay.presented.length;
    for (const [member, value] of [
      ['value', '9000000'],
      ['to', `0x${'2'.repeat(40)}`],
      ['validBefore', '9999999999'],
      ['nonce', `0x${'3'.repeat(64)}`],
      ['from', `0x${'4'.repeat(40)}`],
    ] as const) {
      const authorization = { ...record.authorization, [member]: value };
      writeFileSync(path, `${JSON.stringify({ ...record, authorization })}\n`);
      await assert.rejects(buy('order-1'), /none that this wallet has signed, and nothing is sent/, member);
    }
    assert.equal(relay.presented.length, presented);
  });

  test('a payment that was recorded and never sent is sent by the repeat', async () => {
    const { relay, buy, lines } = world();
    const lost: Lies = {
      respond: (request, honest) =>
        request.headers.get('PAYMENT-SIGNATURE') === null
          ? honest()
          : Promise.resolve(Response.redirect('https://elsewhere.example/', 307)),
    };
    relay.lie(lost);
    assert.equal((await buy('order-1')).outcome, 'unfinished');
    relay.lie({});
    assert.equal((await buy('order-1')).outcome, 'delivered');
    assert.deepEqual([payments(relay), lines().length], [1, 1]);
  });

  test('a payment that the relay refuses, or that has expired, is not replaced', async () => {
    const { relay, buy, lines, laterBy } = world();
    relay.lie({
      respond: async (request, honest) =>
        request.headers.get('PAYMENT-SIGNATURE') === null
          ? honest()
          : Response.json({ error: 'payment_required: authorization_expired' }, { status: 402 }),
    });
    for (const wait of [0, DAY_MS]) {
      laterBy(wait);
      assert.equal((await buy('order-1')).outcome, 'relay_refused');
    }
    assert.deepEqual([payments(relay), lines().length], [1, 1]);
  });

  test('a key that names another order is refused, whatever differs', async () => {
    const { relay, buy, lines, signed } = world();
    await buy('order-1');
    const before = [signed(), relay.presented.length];
    for (const change of [
      { url: 'https://target.example/' },
      { body: 1 },
      { method: 'PUT' },
      { headers: { a: 'b' } },
    ]) {
      const { outcome, error } = await buy('order-1', change as Partial<Order['request']>);
      assert.deepEqual([outcome, error?.member], ['policy_refused', 'idempotency_key']);
      assert.match(error?.actual ?? '', /^order-1, which names another order since \d{4}-/);
    }
    assert.deepEqual([[signed(), relay.presented.length], lines().length], [before, 1]);
  });

  test('the same order ten times at once: one record, one payment', async () => {
    const { relay, buy, lines } = world();
    const results = await Promise.all(Array.from({ length: 10 }, () => buy('order-1')));
    assert.deepEqual([...new Set(results.map(({ outcome }) => outcome))], ['delivered']);
    assert.deepEqual([payments(relay), lines().length], [1, 1]);
  });
});

describe('a budget for one UTC day', () => {
  test('what was signed counts, whatever became of it; the next day begins at zero', async () => {
    const { relay, buy, laterBy, signed } = world(newPath(), 8000n);
    relay.lie({
      respond: (request, honest) => (request.headers.has('PAYMENT-SIGNATURE') ? gone() : honest()),
    });
    assert.equal((await buy('order-1')).outcome, 'unfinished');
    relay.lie({});
    assert.equal((await buy('order-2')).outcome, 'delivered');
    const before = signed();
    const { outcome, error } = await buy('order-3');
    assert.deepEqual([outcome, error?.member, signed()], ['policy_refused', 'budget_usd', before]);
    assert.match(error?.expected ?? '', /^at most \$0\.008 on \d{4}-\d\d-\d\d \(UTC\)$/);
    assert.equal(error?.actual, '$0.006 signed before, and $0.003 now');
    // An order that was paid for costs nothing more.
    assert.equal((await buy('order-2')).outcome, 'delivered');
    laterBy(DAY_MS);
    assert.equal((await buy('order-3')).outcome, 'delivered');
  });
  const gone = async () => Response.redirect('https://elsewhere.example/', 307);

  test('exactly the budget is allowed', async () => {
    const { buy } = world(newPath(), 3000n);
    assert.equal((await buy('order-1')).outcome, 'delivered');
    assert.equal((await buy('order-2')).error?.member, 'budget_usd');
  });

  test('a clock that is set back does not give a second budget', async () => {
    const { buy, laterBy } = world(newPath(), 3000n);
    assert.equal((await buy('order-1')).outcome, 'delivered');
    laterBy(-DAY_MS);
    assert.equal((await buy('order-2')).error?.member, 'budget_usd');
  });

  test('twelve orders at once, also through a symbolic link: no more than the budget', async () => {
    const path = newPath();
    const link = `${path}.link`;
    const direct = world(path, 15_000n);
    await direct.buy('order-0');
    symlinkSync(path, link);
    const linked = world(link, 15_000n);
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? direct : linked).buy(`order-${i + 1}`)),
    );
    const outcomes = results.map(({ outcome, error }) => error?.member ?? outcome).sort();
    assert.deepEqual(outcomes, [...Array(8).fill('budget_usd'), ...Array(4).fill('delivered')]);
    assert.deepEqual(direct.lines().length, 5);
  });
});

describe('a ledger that cannot be trusted pays nothing', () => {
  const damages: readonly (readonly [string, (lines: readonly string[]) => string, RegExp])[] = [
    ['a cut line', ([a = '', b = '']) => `${a}\n${b.slice(0, 40)}`, /line 2 is cut off/],
    ['a last line without its end', ([a = '']) => a, /line 1 is cut off/],
    ['a missing line', ([, b]) => `${b}\n`, /line 1 is numbered 2: lines are missing/],
    ['a repeated line', ([a]) => `${a}\n${a}\n`, /line 2 is numbered 1: lines are missing or repeated/],
    ['zeros', ([a]) => `${a}\n${'\0'.repeat(64)}\n`, /line 2 is no record/],
    ['an empty line', ([a]) => `${a}\n\n`, /line 2 is no record/],
    ['another version', ([a = '']) => `${a.replace('"v":1', '"v":2')}\n`, /line 1 is no record/],
    ['an amount that is none', ([a = '']) => `${a.replace('"0.003"', '"-5"')}\n`, /line 1 is no record/],
    ['another member', ([a = '']) => `${a.replace('"v":1', '"v":1,"x":1')}\n`, /line 1 is no record/],
  ];
  for (const [name, damage, problem] of damages)
    test(name, async () => {
      const { path, relay, buy, lines, signed } = world(newPath(), 1_000_000n);
      await buy('order-1');
      await buy('order-2');
      const text = damage(lines());
      writeFileSync(path, text);
      const before = [signed(), relay.presented.length];
      for (const key of ['order-1', 'order-3'])
        await assert.rejects(buy(key), (error: unknown) => {
          assert.ok(error instanceof LedgerUnusable);
          assert.match(error.message, problem);
          assert.match(error.message, /nothing is paid.*remove the line.*restore the file/);
          return true;
        });
      assert.deepEqual([signed(), relay.presented.length], before);
      assert.equal(readFileSync(path, 'utf8'), text, 'the file is not changed');
    });

  test('a folder, a device, a path that is none', async () => {
    const path = newPath();
    mkdirSync(path);
    for (const bad of [path, '/dev/null', join(path, 'no', 'such', 'folder', 'ledger')]) {
      const problem = (error: unknown) => error instanceof LedgerUnusable && error.message.includes(bad);
      await assert.rejects(async () => world(bad).buy('order-1'), problem, bad);
    }
  });
});
