// A purchase from a relay that lies: nothing but the buyer's own purchase is accepted, the member that differs is named,
// and at most one payment is signed. Offers are in offer.test.ts.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CallResult } from '#src/buyer/purchase.ts';
import { testKey } from '#test/support/given/primitives.ts';
import {
  changed,
  type Draft,
  hashOf,
  type Lies,
  type LyingRelay,
  PAY_TO,
  type Tree,
} from '#test/support/witness/lying-relay.ts';
import {
  buyerWorld,
  decoded,
  good,
  jwkOf,
  membersOf,
  REQUEST,
  WALLETS,
} from '#test/support/world/buyer-world.ts';

const STRANGER = '0x2222222222222222222222222222222222222222';

describe('an honest relay', () => {
  test('a target that the relay refuses is found before anything is signed', async () => {
    const { relay, buy } = buyerWorld();
    const error = { code: 'unsafe_target', message: 'The target is not a public HTTPS address.' };
    relay.lie({
      respond: async (request, honest) =>
        request.url.endsWith('/api/policy/check')
          ? Response.json({ ok: false, allowed: false, error })
          : honest(),
    });
    const { result, signed } = await buy();
    assert.deepEqual([result.outcome, result.error?.member, signed], ['policy_refused', 'target', 0]);
    assert.match(result.error?.actual ?? '', /unsafe_target/);
  });
  test('a relay that gives no verdict on the target is asked for the call itself', async () => {
    for (const status of [429, 500, 503]) {
      const { relay, buy } = buyerWorld();
      relay.lie({
        respond: async (request, honest) =>
          request.url.endsWith('/api/policy/check') ? new Response(null, { status }) : honest(),
      });
      good(await buy());
    }
  });
  test('every fact holds, and the payment is named by its hash', async () => {
    const { relay, buy } = buyerWorld();
    const bought = await buy();
    good(bought);
    const { evidence, payment } = bought.result;
    assert.deepEqual(
      evidence?.facts.map(({ name, ok }) => [name, ok]),
      [
        ['receipt_verified_offline', true],
        ['receipt_names_payment', true],
        ['receipt_binds_request', true],
        ['answer_matches_receipt', true],
      ],
    );
    const presented = JSON.parse(decoded(relay));
    assert.equal(payment?.payloadHash, hashOf(presented.payload));
    assert.deepEqual([bought.signed, bought.presented], [1, 1]);
  });

  test('without a body, headers and key; with a trailing dot and a default port', async () => {
    const { buy } = buyerWorld();
    good(await buy({ request: { url: 'https://Target.example.:443' } }));
  });

  test('a settlement whose transaction the relay does not know: the words say what is not verified', async () => {
    const { relay, buy } = buyerWorld();
    relay.lie({ payload: (payload) => changed(payload, 'payment.transaction', null) });
    const bought = await buy();
    good(bought);
    const { evidence, payment } = bought.result;
    assert.equal(evidence?.settlement?.transaction, null);
    const words = evidence?.facts.find(({ name }) => name === 'receipt_names_payment')?.words ?? '';
    assert.match(words, /; the relay does not know its transaction: /);
    assert.ok(words.includes(payment?.authorization.nonce ?? 'none'), words);
  });

  test('a failed target is a verified result, and no delivery', async () => {
    const { buy } = buyerWorld();
    const { result } = await buy({ request: { ...REQUEST, url: 'https://target.example/fails' } });
    assert.deepEqual([result.outcome, result.error], ['target_failed', null]);
  });

  test('published keys are fetched again if the receipt names a newer one', async () => {
    const { relay, buy } = buyerWorld();
    let asked = 0;
    relay.lie({
      respond: (request, honest) =>
        request.url.endsWith('/jwks.json') && asked++ === 0
          ? Promise.resolve(Response.json({ keys: [jwkOf(testKey())] }))
          : honest(),
    });
    good(await buy());
    assert.equal(asked, 2);
  });
});

describe('an answer that is not this purchase', () => {
  const signed = (path: string, value: unknown): Lies => ({
    payload: (payload) => changed(payload, path, value),
  });
  const shown = (path: string, value: unknown): Lies => ({
    answer: (draft) => ({ ...draft, body: changed(draft.body, path, value) }),
  });
  const header = (path: string, value: unknown): Lies => ({
    answer: (draft) => ({ ...draft, header: changed(draft.header ?? {}, path, value) }),
  });
  const status = (code: number): Lies => ({ answer: (draft) => ({ ...draft, status: code }) });
  const HASH = `0x${'e'.repeat(64)}`;

  const lies: readonly (readonly [string, Lies, ...string[]])[] = [
    ['another payment’s hash', signed('payment.payloadHash', 'e'.repeat(64)), 'receipt.payment.payloadHash'],
    ['another payer', signed('payment.payer', STRANGER), 'receipt.payment.payer'],
    ['another payee', signed('payment.payTo', STRANGER), 'receipt.payment.payTo'],
    ['another amount', signed('payment.amount', '9000'), 'receipt.payment.amount'],
    ['another asset', signed('payment.asset', STRANGER), 'receipt.payment.asset'],
    ['another network', signed('payment.network', 'eip155:84532'), 'receipt.payment.network'],
    ['another scheme', signed('payment.scheme', 'upto'), 'receipt.payment.scheme'],
    ['an empty transaction', signed('payment.transaction', ''), 'receipt.payment.transaction'],
    ['a transaction of words', signed('payment.transaction', 'paid'), 'receipt.payment.transaction'],
    ['an unpaid receipt', signed('payment', null), 'payment'],
    ['a receipt of demo mode', signed('mode', 'demo'), 'receipt.payment'],
    ['another method', signed('request.method', 'DELETE'), 'receipt.request.method'],
    ['a failure under 200', { ...signed('outcome.status', 'failed'), ...status(200) }, 'http.status'],
    ['a success without an answer', signed('outcome.responseStatus', null), 'receipt.outcome.responseStatus'],
    [
      'a success whose target answered 500',
      signed('outcome.responseStatus', 500),
      'receipt.outcome.responseStatus',
    ],
    ['a success whose attempt failed', signed('attempts.0.outcome', 'failed'), 'receipt.attempts.outcome'],
    ['an old date', signed('iat', 1_600_000_000), 'receipt.iat'],
    ['a date far ahead', signed('iat', 4_000_000_000), 'receipt.iat'],
    ['an unknown version', signed('v', 9), 'receipt.payload_version_supported'],
    ['a decision that was not ordered', signed('decisionId', 'dec_0'), 'receipt.decisionId'],
    ['another signing key', { signer: testKey() }, 'receipt.signature_valid'],
    ['a success under 502', status(502), 'http.status'],
    ['a failed outcome in the text', shown('job.status', 'failed'), 'job.status'],
    ['another job', shown('job.id', 'job_0'), 'receipt.payload_job_id'],
    ['another receipt id', shown('receipt.id', 'rcpt_0'), 'receipt.receipt_present'],
    ['another number of attempts', shown('job.attempts', 3), 'job.attempts'],
    ['another answer of the target', shown('job.responseStatus', 201), 'job.responseStatus'],
    ['another key id', shown('receipt.keyId', 'other'), 'receipt.keyId'],
    ['another amount in the text', shown('payment.amount', '1'), 'payment.amount'],
    ['a replay that is none', shown('idempotentReplay', true), 'receipt.replay'],
    ['a link elsewhere', shown('links.job', 'https://evil.example/'), 'links.job'],
    ['a forged checkpoint', shown('checkpoint', 'relay.example/receipts\n1\nAAAA\n\n— x y\n'), 'checkpoint'],
    ['no disclosures', shown('disclosures', []), 'disclosures.target_url'],
    ['no members', { answer: (draft) => ({ ...draft, body: { job: {}, receipt: {} } }) }, 'mode'],
    [
      'a transaction in the header that the receipt does not know',
      { ...signed('payment.transaction', null), ...header('transaction', HASH) },
      'payment_response.transaction',
    ],
    ['no payment header', { answer: (draft) => ({ ...draft, header: null }) }, 'payment_response.success'],
    ['a payment header of no success', header('success', false), 'payment_response.success'],
    ['another transaction in the header', header('transaction', HASH), 'payment_response.transaction'],
    ['no transaction in the header', header('transaction', ''), 'payment_response.transaction'],
    ['another payer in the header', header('payer', STRANGER), 'payment_response.payer'],
    ['another network in the header', header('network', 'eip155:1'), 'payment_response.network'],
  ];
  for (const [name, lie, member] of lies)
    test(`${name}: ${member}`, async () => {
      const { relay, buy } = buyerWorld();
      relay.lie(lie);
      const bought = await buy();
      const { outcome, error, payment } = bought.result;
      assert.deepEqual([outcome, error?.member], ['unverified', member], membersOf(bought.result).join());
      assert.notEqual(error?.expected, error?.actual);
      assert.deepEqual([bought.signed, bought.presented], [1, 1]);
      assert.notEqual(payment, null);
    });

  const orders: readonly (readonly [string, Tree, string])[] = [
    ['another URL', { url: 'https://target.example/other' }, 'disclosures.target_url'],
    ['another body', { body: { order: 1 } }, 'disclosures.request_body_sha256'],
    ['no body', { body: undefined }, 'disclosures.request_body_sha256'],
    ['other header names', { headers: { 'x-order': '1' } }, 'disclosures.header_names'],
    ['another idempotency key', { idempotencyKey: 'order-1' }, 'disclosures.idempotency_key'],
    ['no idempotency key', { idempotencyKey: undefined }, 'disclosures.idempotency_key'],
    ['another method, truly signed', { method: 'POST' }, 'receipt.request.method'],
  ];
  for (const [name, change, member] of orders)
    test(`it executed ${name}: ${member}`, async () => {
      const { relay, buy } = buyerWorld();
      relay.lie({ order: (order) => JSON.parse(JSON.stringify({ ...order, ...change })) });
      const { result, signed } = await buy();
      assert.deepEqual([result.outcome, result.error?.member, signed], ['unverified', member, 1]);
    });

  test('forged disclosures: each that opens no commitment is named', async () => {
    const { relay, buy } = buyerWorld();
    const forgery = (name: string, value: unknown) =>
      Buffer.from(JSON.stringify(['A'.repeat(22), name, value])).toString('base64url');
    relay.lie({
      answer: (draft) => {
        const [, ...rest] = draft.body.disclosures as string[];
        const disclosures = [forgery('target_url', 'https://target.example/hook?x=1'), ...rest];
        return { ...draft, body: { ...draft.body, disclosures } };
      },
    });
    const { result } = await buy();
    assert.equal(result.error?.member, 'disclosures.target_url');
    relay.lie({
      answer: (draft) => {
        const disclosures = [...(draft.body.disclosures as string[]), forgery('extra', 'x'), 'nonsense'];
        return { ...draft, body: { ...draft.body, disclosures } };
      },
    });
    const more = await buy({ request: { ...REQUEST, idempotencyKey: 'order-2' } });
    assert.deepEqual(membersOf(more.result), ['disclosures.extra', 'disclosures.6']);
  });

  /** The latest answer is given to every later purchase. */
  const repeating = (relay: LyingRelay, path = relay.answers.at(-1)) =>
    relay.lie({ answer: () => path as Draft });

  test('an old receipt of the same wallet', async () => {
    const { relay, buy } = buyerWorld();
    good(await buy());
    repeating(relay);
    const again = await buy({ request: { ...REQUEST, idempotencyKey: 'order-2' } });
    assert.deepEqual(membersOf(again.result), ['receipt.payment.payloadHash', 'disclosures.idempotency_key']);
    assert.equal(again.signed, 1);
  });

  test('an old receipt of the same order is no proof of a new purchase', async () => {
    const { relay, buy } = buyerWorld();
    good(await buy());
    repeating(relay);
    assert.deepEqual(membersOf((await buy()).result), ['receipt.payment.payloadHash']);
    // Nor if the same key was given: the relay does not even call it a replay.
    assert.deepEqual(membersOf((await buy({ repeatable: true })).result), ['receipt.payment.payloadHash']);
  });

  test('somebody else’s receipt', async () => {
    const { relay, buy } = buyerWorld();
    good(await buy({}, WALLETS[1]));
    repeating(relay);
    const { result } = await buy({ repeatable: true });
    assert.equal(result.error?.member, 'receipt.payment.payer');
    assert.ok(membersOf(result).includes('receipt.payment.payloadHash'));
  });

  test('a receipt of another relay’s key, published by the liar: pinned keys refuse it', async () => {
    const { relay, buy } = buyerWorld();
    const pinned = testKey();
    const { result } = await buy({ keys: [pinned.record] });
    assert.deepEqual([result.outcome, result.error?.member], ['unverified', 'receipt.signature_valid']);
    good(await buy({ keys: [relay.key.record], request: { ...REQUEST, idempotencyKey: 'k-2' } }));
    const retired = { ...relay.key.record, notAfter: 1 };
    const late = await buy({ keys: [retired], request: { ...REQUEST, idempotencyKey: 'k-3' } });
    assert.equal(late.result.error?.member, 'receipt.key_valid_at_issue');
  });

  test('every member of the answer is compared: changed, removed or of another type, none is accepted', async () => {
    const { relay, buy } = buyerWorld();
    good(await buy());
    const body = relay.answers[0]?.body ?? {};
    const paths = leafPaths(body);
    assert.ok(paths.length > 25, String(paths.length));
    let number = 0;
    for (const path of paths)
      for (const value of [undefined, null, 7, 'x', [], {}, true]) {
        const lie = lieOf(path, value);
        if (lie === null) continue;
        relay.lie({ answer: lie });
        const { result } = await buy({ request: { ...REQUEST, idempotencyKey: `n-${++number}` } });
        assert.notEqual(result.error, null, `${path} = ${JSON.stringify(value)}`);
        assert.notEqual(result.outcome, 'delivered');
      }
  });

  /** null: it is the honest value. */
  function lieOf(path: string, value: unknown): ((draft: Draft) => Draft) | null {
    const honest = ['checkpoint', 'job.decisionId', 'job.errorCategory'].includes(path) ? null : undefined;
    if (value === honest && honest === null) return null;
    // A relay may leave a link out: nothing is done with it.
    if (path.startsWith('links.') && value === undefined) return null;
    return (draft) => ({ ...draft, body: changed(draft.body, path, value) });
  }
});

function leafPaths(tree: unknown, path = ''): readonly string[] {
  if (typeof tree !== 'object' || tree === null) return [path];
  return Object.entries(tree).flatMap(([name, value]) =>
    leafPaths(value, path === '' ? name : `${path}.${name}`),
  );
}

describe('an unclear answer: the same payment is presented again, and never a second one', () => {
  /** The answer to every paid request; the call is executed or not. */
  const answering = (make: () => Response | Promise<Response>, executed = false): Lies => ({
    async respond(request, honest) {
      if (request.headers.get('PAYMENT-SIGNATURE') === null) return honest();
      if (executed) await honest();
      return make();
    },
  });
  const html = () => new Response('<h1>hi</h1>', { status: 200, headers: { 'content-type': 'text/html' } });
  const bill = (amount: string) => {
    const accepts = [{ scheme: 'exact', network: 'eip155:8453', amount, payTo: PAY_TO }];
    const value = Buffer.from(JSON.stringify({ x402Version: 2, accepts })).toString('base64');
    return Response.json(
      { error: 'payment_required' },
      { status: 402, headers: { 'PAYMENT-REQUIRED': value } },
    );
  };
  const endings: readonly (readonly [string, Lies, CallResult['outcome'], RegExp])[] = [
    ['HTML', answering(html), 'unfinished', /200 of type text\/html/],
    [
      'an answer without receipt',
      answering(() => Response.json({ job: {} })),
      'unfinished',
      /^200 of type application\/json$/,
    ],
    ['no answer', answering(() => Promise.reject(new Error('cut'))), 'unfinished', /^no answer$/],
    ['a gateway’s 502', answering(() => new Response('', { status: 502 })), 'unfinished', /^502 of type/],
    [
      '503 payment_unconfirmed without end',
      answering(() => Response.json({ error: { code: 'payment_unconfirmed' } }, { status: 503 })),
      'unfinished',
      /^503 payment_unconfirmed$/,
    ],
    [
      'a redirect',
      answering(() => Response.redirect('https://evil.example/', 307)),
      'unfinished',
      /^307, and redirects/,
    ],
    ['a 402 after paying', answering(() => bill('3000')), 'relay_refused', /^402 payment_required/],
    [
      'a higher price in a second 402',
      answering(() => bill('9000')),
      'relay_refused',
      /^402 payment_required/,
    ],
    ['a 402 after executing', answering(() => bill('3000'), true), 'relay_refused', /^402 payment_required/],
  ];
  for (const [name, lie, outcome, actual] of endings)
    test(`${name}: ${outcome}, one payment`, async () => {
      const { relay, buy, clock } = buyerWorld();
      relay.lie(lie);
      const { result, signed } = await buy();
      assert.deepEqual([result.outcome, result.error?.member, signed], [outcome, 'answer', 1]);
      assert.match(result.error?.actual ?? '', actual);
      assert.ok(clock.monotonic() <= 120_000);
    });
});

describe('a later run of the same order with its key, without a ledger', () => {
  test('the recorded result is accepted as an earlier payment’s; a generated key’s is not', async () => {
    const { buy, clock } = buyerWorld();
    good(await buy({ repeatable: true }));
    clock.advance(86_400_000);
    const again = await buy({ repeatable: true });
    good(again);
    assert.equal(again.result.evidence?.earlierPayment, true);
    const foreign = await buy({ repeatable: false });
    assert.deepEqual(membersOf(foreign.result), ['receipt.payment.payloadHash', 'receipt.iat']);
  });
});
