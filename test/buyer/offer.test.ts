// The 402 of a relay that lies, and what is asked of the order before: nothing outside the buyer's limits is signed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Order } from '#src/buyer/purchase.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { changed, type Lies, PAY_TO, type Tree } from '#test/support/witness/lying-relay.ts';
import { buyerWorld, decoded, good, jwkOf, REQUEST } from '#test/support/world/buyer-world.ts';

const STRANGER = '0x2222222222222222222222222222222222222222';
const EXECUTE = '/api/execute/webhook';

/** The only requirement of the 402, with one member changed. */
const term =
  (member: string, value: unknown): NonNullable<Lies['offer']> =>
  (required) =>
    changed(required, `accepts.0.${member}`, value);

describe('an offer outside the limits is not signed', () => {
  const other = (name: string, change: Lies, member: string) => [name, change, member] as const;
  const lies = [
    other('a higher price', { offer: term('amount', '3001') }, 'offer.price'),
    other('a negative price', { offer: term('amount', '-1') }, 'offer.price'),
    other('another payee', { offer: term('payTo', STRANGER) }, 'offer.pay_to'),
    other('another asset', { offer: term('asset', STRANGER) }, 'offer.asset'),
    other('another method', { offer: term('extra.assetTransferMethod', 'permit2') }, 'offer.asset'),
    other('another network', { offer: term('network', 'eip155:84532') }, 'offer.network'),
    other('another scheme', { offer: term('scheme', 'upto') }, 'offer.network'),
    other('no validity', { offer: term('maxTimeoutSeconds', 0) }, 'offer.network'),
    other('no domain', { offer: term('extra', {}) }, 'offer.network'),
    other('a null as terms', { offer: (bill) => changed(bill, 'accepts', [null]) }, 'offer'),
    other('no terms', { offer: (bill) => changed(bill, 'accepts', []) }, 'offer.network'),
    other(
      'another resource',
      { offer: (bill) => changed(bill, 'resource.url', `https://evil.example${EXECUTE}`) },
      'offer.resource',
    ),
    other('version 1', { offer: (bill) => changed(bill, 'x402Version', 1) }, 'offer'),
    other('no base64', { offer: () => '%%%' }, 'offer'),
    other('null', { offer: () => Buffer.from('null').toString('base64') }, 'offer'),
    other(
      'HTML',
      {
        respond: async () =>
          new Response('<h1>Pay</h1>', { status: 402, headers: { 'content-type': 'text/html' } }),
      },
      'offer',
    ),
    other('a redirect', { respond: async () => Response.redirect('https://evil.example/', 307) }, 'offer'),
    other('no payment', { respond: async () => Response.json({}, { status: 400 }) }, 'offer'),
  ];
  for (const [name, lie, member] of lies)
    test(`${name}: ${member}`, async () => {
      const { relay, buy } = buyerWorld();
      relay.lie(lie);
      const { result, signed, presented } = await buy();
      assert.deepEqual(
        [result.outcome, result.error?.member],
        ['policy_refused', member],
        result.error?.message ?? '',
      );
      assert.deepEqual([signed, presented, result.payment], [0, 0, null]);
    });

  test('a relay that is busy is asked again', async () => {
    for (const status of [408, 429, 503]) {
      const { relay, buy } = buyerWorld();
      let busy = 2;
      relay.lie({
        respond: async (request, honest) =>
          request.url.endsWith(EXECUTE) && busy-- > 0 ? new Response(null, { status }) : honest(),
      });
      const bought = await buy();
      good(bought);
      assert.deepEqual([bought.signed, bought.presented], [1, 1]);
    }
  });

  test('the price is compared and shown in dollars', async () => {
    const { relay, buy } = buyerWorld();
    relay.lie({ offer: term('amount', '1234567') });
    const { error } = (await buy()).result;
    assert.deepEqual([error?.expected, error?.actual], ['at most $0.003', '$1.234567']);
  });

  test('of several terms the first within the limits is paid', async () => {
    const { relay, buy } = buyerWorld();
    relay.lie({
      offer: (bill) => {
        const [first] = bill.accepts as Tree[];
        return { ...bill, accepts: [{ ...first, scheme: 'upto' }, { ...first, amount: '9000' }, first] };
      },
    });
    good(await buy());
  });

  for (const [allowHosts, ok] of [
    [['target.example'], true],
    [['other.example', '*.example'], true],
    [['*.target.example'], false],
    [['evil.example'], false],
  ] as const)
    test(`allowed hosts ${allowHosts}: ${ok ? 'paid' : 'not paid'}`, async () => {
      const { buy } = buyerWorld();
      const limits = { maxPriceMicroUsd: 3000n, network: 'eip155:8453', payTo: PAY_TO, allowHosts };
      const { result, signed } = await buy({ limits });
      assert.deepEqual([result.error?.member, signed], ok ? [undefined, 1] : ['offer.target_host', 0]);
    });

  test('no keys are published: nothing is paid', async () => {
    const checkpoints = JSON.stringify({ keys: [{ ...jwkOf(testKey()), purpose: 'checkpoint' }] });
    for (const body of ['<h1>', '{"keys":[]}', '{}', checkpoints]) {
      const { relay, buy } = buyerWorld();
      relay.lie({
        respond: async (request, honest) =>
          request.url.endsWith('/jwks.json') ? new Response(body) : honest(),
      });
      const { result, signed } = await buy();
      assert.deepEqual([result.error?.member, signed], ['keys', 0]);
    }
  });
});

describe('an authorization lives for at most 300 s', () => {
  for (const [asked, lives] of [
    [10 * 365 * 86_400, 300],
    [300, 300],
    [120, 120],
  ] as const)
    test(`the 402 asks for ${asked} s`, async () => {
      const { relay, buy, clock } = buyerWorld();
      relay.lie({ offer: asked === 120 ? (bill) => bill : term('maxTimeoutSeconds', asked) });
      const begun = Math.floor(clock.now() / 1000);
      good(await buy());
      const { payload, accepted } = JSON.parse(decoded(relay));
      const validBefore = Number(payload.authorization.validBefore);
      assert.ok(validBefore >= begun + lives, `${validBefore - begun}`);
      assert.ok(validBefore <= Math.ceil(clock.now() / 1000) + lives, `${validBefore - begun}`);
      assert.equal(accepted.maxTimeoutSeconds, asked);
    });
});

describe('an order that every relay refuses is not signed', () => {
  const orders: readonly (readonly [string, Partial<Order['request']>, RegExp])[] = [
    ['no https URL', { url: 'http://target.example/' }, /absolute HTTPS URL/],
    ['a header name with a blank', { headers: { 'a b': '1' } }, /header name/],
    ['two names of one header', { headers: { a: '1', A: '2' } }, /differ in case/],
    ['a header value with a line break', { headers: { a: '1\n2' } }, /header value/],
    ['a long key', { idempotencyKey: 'k'.repeat(161) }, /1 to 160 characters/],
    ['an empty key', { idempotencyKey: '' }, /1 to 160 characters/],
    ['a long body', { body: 'x'.repeat(128 * 1024) }, /over 131072 bytes/],
  ];
  for (const [name, change, message] of orders)
    test(name, async () => {
      const { relay, buy } = buyerWorld();
      const refused = (error: unknown) => error instanceof OperatorError && message.test(error.message);
      await assert.rejects(buy({ request: { ...REQUEST, ...change } }), refused);
      assert.equal(relay.presented.length, 0);
    });
});
