import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Hex } from 'viem';
import { canonicalJson } from '#src/domain/canonical-json.ts';
import { ALLOWED, type Allowed, isRefused, type Refused } from '#src/domain/refusal.ts';
import { runs } from '#test/support/given/property-runs.ts';
import {
  ACCEPTED,
  type Authorization,
  authorizationOf,
  base64,
  headers,
  lab,
  PAY_TO,
  type Payload,
  payloadOf,
  presented,
  randomNonce,
  refusalOf,
  signatureOf,
  USDC,
  v1,
  v2,
  wallet,
} from './lab.ts';

const x402 = await lab();
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const shouted = (hex: string) => hex.toUpperCase().replace('0X', '0x') as Hex;
const OTHER = '0x2222222222222222222222222222222222222222';

test('a payment is identified by its authorization, in lower case', async () => {
  const account = wallet();
  const payload = await payloadOf(account, { nonce: shouted(randomNonce()) });
  const { nonce, validAfter, validBefore } = payload.authorization;
  const from = account.address.toLowerCase();
  const authorization = {
    from,
    to: PAY_TO,
    value: '3000',
    validAfter,
    validBefore,
    nonce: nonce.toLowerCase(),
  };
  const { carried, ...facts } = await presented(x402, v2(payload));
  assert.deepEqual(facts, {
    hash: sha256(`eip155:8453:${USDC.toLowerCase()}:${from}:${nonce.toLowerCase()}`),
    scheme: 'exact',
    network: 'eip155:8453',
    asset: USDC.toLowerCase(),
    amount: '3000',
    payTo: PAY_TO,
    payer: from,
    signer: 'recovered',
    nonce: nonce.toLowerCase(),
    validBefore,
    payloadHash: sha256(canonicalJson({ authorization, signature: payload.signature })),
    x402Version: 2,
    identifier: null,
  });
  assert.notEqual(carried, undefined);
});

test('the same authorization has the same identity and the same payload in both versions and in any spelling', async () => {
  const account = wallet();
  const payload = await payloadOf(account);
  const loud: Payload = {
    authorization: {
      ...payload.authorization,
      from: shouted(account.address),
      nonce: shouted(payload.authorization.nonce),
    },
    signature: shouted(payload.signature),
  };
  const bareV = { ...payload, signature: withV(payload.signature, (v) => v - 27) };
  const many = [v1(payload), v2(payload), v1(loud), v2(loud), v2(bareV)];
  const all = await Promise.all(many.map((header) => presented(x402, header)));
  assert.equal(new Set(all.map(({ hash }) => hash)).size, 1);
  assert.equal(new Set(all.map(({ payloadHash }) => payloadHash)).size, 1);
  assert.deepEqual(
    all.map((payment) => payment.x402Version),
    [1, 2, 1, 2, 2],
  );
  const other = await presented(x402, v2(await payloadOf(account)));
  assert.notEqual(other.hash, all[0]?.hash);
  assert.notEqual(other.payloadHash, all[0]?.payloadHash);
});

test('with both headers version 2 is read, also if only version 1 is valid', async () => {
  const [first, second] = [await payloadOf(wallet()), await payloadOf(wallet())];
  const both = (text: string) =>
    headers({ 'payment-signature': text, 'x-payment': v1(second)('X-PAYMENT') ?? '' });
  const payment = await presented(x402, both(v2(first)('PAYMENT-SIGNATURE') ?? ''));
  assert.equal(payment.nonce, first.authorization.nonce);
  assert.equal(await refusalOf(x402, both('garbage!')), 'payment_header_not_base64');
});

test('a payment header is presented, readable or not', () => {
  const { protocol } = x402;
  assert.equal(protocol.isPresented(headers({})), false);
  assert.equal(protocol.isPresented(headers({ 'x-payment': '?' })), true);
  assert.equal(protocol.isPresented(headers({ 'payment-signature': '' })), true);
});

test('a missing header and headers without a payment are refused with a code', async () => {
  const payload = await payloadOf(wallet());
  const cases: readonly [ReturnType<typeof headers>, string][] = [
    [headers({}), 'payment_required'],
    [headers({ 'payment-signature': '' }), 'payment_header_not_base64'],
    [headers({ 'payment-signature': 'not base64 !' }), 'payment_header_not_base64'],
    [headers({ 'payment-signature': Buffer.from('{').toString('base64') }), 'payment_header_not_json'],
    [
      headers({ 'payment-signature': Buffer.from([0xff, 0xfe]).toString('base64') }),
      'payment_header_not_json',
    ],
    [headers({ 'payment-signature': base64(null) }), 'invalid_payment_header'],
    [headers({ 'payment-signature': base64([payload]) }), 'invalid_payment_header'],
    // Each version in its own header.
    [headers({ 'payment-signature': v1(payload)('X-PAYMENT') ?? '' }), 'invalid_payment_header'],
    [headers({ 'x-payment': v2(payload)('PAYMENT-SIGNATURE') ?? '' }), 'invalid_payment_header'],
    [v2({ ...payload, signature: `0x${'ab'.repeat(5000)}` }), 'invalid_payload'],
    [v2(payload, ACCEPTED, { padding: 'x'.repeat(16 * 1024) }), 'payment_header_too_long'],
    [v2({}), 'invalid_payload'],
    [v2({ ...payload, permit2Authorization: {} }), 'unsupported_payload_type'],
    [v2({ permit2Authorization: {}, signature: payload.signature }), 'unsupported_payload_type'],
  ];
  for (const [header, reason] of cases) assert.equal(await refusalOf(x402, header), reason);
});

test('base64 is read with and without padding, and in the URL alphabet', async () => {
  // Lengths for every padding, and bytes that differ between the two alphabets.
  for (const pad of ['', 'x', 'xx', '???>>>']) {
    const text = v2(await payloadOf(wallet()), ACCEPTED, { extensions: { pad } })('PAYMENT-SIGNATURE') ?? '';
    const url = text.replaceAll('+', '-').replaceAll('/', '_');
    for (const form of [text, text.replaceAll('=', ''), url, ` ${text} `]) {
      await presented(x402, (name) => (name === 'PAYMENT-SIGNATURE' ? form : null));
    }
  }
});

test('the accepted requirements must have our scheme, network and asset, and equal the signed terms', async () => {
  const payload = await payloadOf(wallet());
  const changes: readonly [object, string][] = [
    [{ scheme: 'upto' }, 'unsupported_scheme'],
    [{ network: 'eip155:84532' }, 'network_mismatch'],
    [{ network: 'base:' }, 'network_mismatch'],
    [{ asset: OTHER }, 'asset_mismatch'],
    [{ amount: '2999' }, 'amount_mismatch'],
    [{ amount: '3000.0' }, 'amount_mismatch'],
    [{ amount: '0xbb8' }, 'amount_mismatch'],
    [{ payTo: OTHER }, 'recipient_mismatch'],
  ];
  for (const [change, reason] of changes) {
    assert.equal(await refusalOf(x402, v2(payload, { ...ACCEPTED, ...change })), reason);
  }
  assert.equal(await refusalOf(x402, v1(payload, { scheme: 'upto' })), 'unsupported_scheme');
  assert.equal(await refusalOf(x402, v1(payload, { network: 'base-sepolia' })), 'network_mismatch');
  assert.equal(await refusalOf(x402, v1(payload, { network: 'eip155:8453' })), 'network_mismatch');
  await presented(x402, v2(payload, { ...ACCEPTED, asset: USDC.toLowerCase(), payTo: shouted(PAY_TO) }));
});

test('a payment has the signed terms; they are compared with the current ones for new payments only', async () => {
  const signed: readonly [Partial<Authorization>, string][] = [
    [{ to: OTHER }, 'recipient_mismatch'],
    [{ value: '2999' }, 'amount_mismatch'],
    [{ value: '3001' }, 'amount_mismatch'],
    [{ value: '0' }, 'amount_mismatch'],
  ];
  for (const [changes, reason] of signed) {
    const payload = await payloadOf(wallet(), changes);
    const { to, value } = payload.authorization;
    assert.equal(await refusalOf(x402, v2(payload)), reason, 'not what was accepted');
    for (const header of [v1(payload), v2(payload, { ...ACCEPTED, payTo: to, amount: value })]) {
      const payment = await presented(x402, header);
      assert.deepEqual([payment.payTo, payment.amount], [to, value]);
      assert.equal(reasonOf(x402.payments.validateTerms(payment)), reason);
      assert.equal(reasonOf(x402.payments.validateNew(payment, Date.now())), reason);
    }
  }
  const ours = await presented(x402, v2(await payloadOf(wallet())));
  assert.equal(x402.payments.validateTerms(ours), ALLOWED);
  assert.equal(x402.payments.validateNew(ours, Date.now()), ALLOWED);
});

test('the payee does not pay itself', async () => {
  const account = wallet();
  const own = await lab({ x402: { payTo: account.address } });
  const payment = await presented(own, v1(await payloadOf(account, { to: account.address })));
  assert.equal(reasonOf(own.payments.validateTerms(payment)), 'payer_is_payee');
  assert.equal(reasonOf(own.payments.validateNew(payment, Date.now())), 'payer_is_payee');
});

test('the terms are validated before the time window', async () => {
  const payload = await payloadOf(wallet(), { value: '1', validBefore: '0' });
  const payment = await presented(x402, v1(payload));
  assert.equal(reasonOf(x402.payments.validateNew(payment, Date.now())), 'amount_mismatch');
});

test('an earlier payment is still read after a change of price and payee, and refused after one of network or asset', async () => {
  const payload = await payloadOf(wallet());
  const before = await presented(x402, v2(payload));
  const dearer = await lab({ x402: { priceUsd: '0.01', payTo: OTHER } });
  for (const header of [v1(payload), v2(payload)]) {
    const { carried: _, x402Version: __, ...facts } = await presented(dearer, header);
    const { carried: ___, x402Version: ____, ...first } = before;
    assert.deepEqual(facts, first);
  }
  assert.equal(reasonOf(dearer.payments.validateTerms(before)), 'recipient_mismatch');
  const elsewhere = await lab({ x402: { network: 'eip155:84532' } });
  assert.equal(await refusalOf(elsewhere, v2(payload)), 'network_mismatch');
  assert.equal(await refusalOf(elsewhere, v1(payload)), 'network_mismatch');
  const other = await lab({ x402: { asset: OTHER } });
  assert.equal(await refusalOf(other, v2(payload)), 'asset_mismatch');
  assert.equal(await refusalOf(other, v1(payload)), 'invalid_signature');
});

test('numbers have one spelling', async () => {
  const payload = await payloadOf(wallet());
  const spellings: readonly Partial<Record<keyof Authorization, unknown>>[] = [
    { value: '03000' },
    { value: '+3000' },
    { value: '3e3' },
    { value: '0xbb8' },
    { value: ' 3000' },
    { value: '3000\n' },
    { value: 3000 },
    { validAfter: '-1' },
    { validBefore: '' },
    { nonce: `0x${'a'.repeat(63)}` },
    { nonce: `0x${'a'.repeat(66)}` },
    { from: payload.authorization.from.slice(2) },
  ];
  for (const spelling of spellings) {
    const odd = { ...payload, authorization: { ...payload.authorization, ...spelling } };
    assert.notDeepEqual(odd, payload);
    assert.equal(await refusalOf(x402, v2(odd)), 'invalid_payload', JSON.stringify(spelling));
  }
});

test('a signature by another key, over other terms or for another asset, chain or domain is refused', async () => {
  const account = wallet();
  const authorization = authorizationOf(account);
  const good = await signatureOf(account, authorization);
  const spoofed = { ...authorization, from: wallet().address };
  const longer = { ...authorization, validBefore: String(Number(authorization.validBefore) + 1) };
  const payloads: readonly Payload[] = [
    { authorization, signature: await signatureOf(wallet(), authorization) },
    { authorization: spoofed, signature: good },
    { authorization: longer, signature: good },
    { authorization, signature: await signatureOf(account, authorization, { chainId: 1 }) },
    { authorization, signature: await signatureOf(account, authorization, { name: 'USDC' }) },
    { authorization, signature: await signatureOf(account, authorization, { version: '1' }) },
    { authorization, signature: await signatureOf(account, authorization, { verifyingContract: OTHER }) },
    { authorization, signature: `0x${'00'.repeat(65)}` },
    { authorization, signature: `0x${'ff'.repeat(65)}` },
    { authorization, signature: withV(good, () => 99) },
    { authorization, signature: withV(good, (v) => 55 - v) },
    { authorization, signature: twin(good) },
  ];
  await presented(x402, v2({ authorization, signature: good }));
  for (const payload of payloads) {
    assert.notDeepEqual(payload, { authorization, signature: good });
    assert.equal(await refusalOf(x402, v2(payload)), 'invalid_signature');
    assert.equal(await refusalOf(x402, v1(payload)), 'invalid_signature');
  }
});

test('a signature that is not 65 bytes is a contract wallet’s, verified by the facilitator', async () => {
  const payload = await payloadOf(wallet());
  for (const signature of [
    `${payload.signature}00`,
    payload.signature.slice(0, 130),
    `0x${'ab'.repeat(2000)}`,
  ]) {
    const payment = await presented(x402, v2({ ...payload, signature }));
    assert.equal(payment.signer, 'contract');
    assert.equal(payment.payer, payload.authorization.from.toLowerCase());
  }
  assert.equal(await refusalOf(x402, v2({ ...payload, signature: '0x' })), 'invalid_payload');
  assert.equal(
    await refusalOf(x402, v2({ ...payload, signature: `${payload.signature}0` })),
    'invalid_payload',
  );
});

test('a number over 256 bits is refused, not thrown', async () => {
  const payload = await payloadOf(wallet());
  const authorization = { ...payload.authorization, validBefore: '9'.repeat(78) };
  assert.equal(await refusalOf(x402, v2({ ...payload, authorization })), 'invalid_signature');
});

test('the time window: not expired, not too far ahead, begun', async () => {
  const now = Math.floor(Date.now() / 1000);
  const cases: readonly [Partial<Authorization>, string | null][] = [
    [{ validBefore: String(now + 6) }, 'authorization_expired'],
    [{ validBefore: String(now - 100) }, 'authorization_expired'],
    [{ validBefore: '0' }, 'authorization_expired'],
    [{ validBefore: String(now + 7) }, null],
    [{ validBefore: String(now + 300) }, null],
    [{ validBefore: String(now + 301) }, 'authorization_too_far_ahead'],
    [{ validBefore: String(2n ** 256n - 1n) }, 'authorization_too_far_ahead'],
    [{ validAfter: String(now) }, null],
    [{ validAfter: String(now + 1) }, 'authorization_not_yet_valid'],
  ];
  for (const [changes, reason] of cases) {
    const payment = await presented(x402, v2(await payloadOf(wallet(), changes)));
    assert.equal(reasonOf(x402.payments.validateNew(payment, now * 1000 + 999)), reason);
  }
});

test('a stock client with a wrong clock: the refusal states both times and by how much its clock is wrong', async () => {
  const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5);
  for (const [skew, clock, ends] of [
    [-118, '118 s slow', '2 s after'],
    [-125, '125 s slow', '5 s before'],
    [-600, '600 s slow', '480 s before'],
    [185, '185 s fast', '305 s after'],
    [620, '620 s fast', '740 s after'],
  ] as const) {
    const signed = nowMs / 1000 + skew;
    const times = { validAfter: String(signed - 600), validBefore: String(signed + 120) };
    const payment = await presented(x402, v2(await payloadOf(wallet(), times)));
    const verdict = x402.payments.validateNew(payment, nowMs);
    const message = 'message' in verdict ? verdict.message : '';
    assert.ok(
      message.includes(`${ends} the time of this relay (header Date, 2026-01-02T03:04:05.000Z)`),
      message,
    );
    assert.ok(message.includes(`about ${clock}`), message);
  }
  for (const skew of [170, 60, 0, -60, -113]) {
    const signed = nowMs / 1000 + skew;
    const times = { validAfter: String(signed - 600), validBefore: String(signed + 120) };
    const payment = await presented(x402, v2(await payloadOf(wallet(), times)));
    assert.equal(x402.payments.validateNew(payment, nowMs), ALLOWED, `${skew}`);
  }
});

test('never throws for any header; accepts only the signed values', async () => {
  const good = await payloadOf(wallet());
  const text = v2(good)('PAYMENT-SIGNATURE') ?? '';
  const mutated = fc
    .tuple(fc.nat(text.length - 1), fc.stringMatching(/^[A-Za-z0-9+/=_-]$/))
    .map(([at, letter]) => text.slice(0, at) + letter + text.slice(at + 1));
  const strange = fc.jsonValue().map(base64);
  const replaced = fc
    .tuple(fc.constantFrom('authorization', 'signature'), fc.jsonValue())
    .map(([name, value]) => v2({ ...good, [name]: value })('PAYMENT-SIGNATURE') ?? '');
  const fields = fc.constantFrom('from', 'to', 'value', 'validAfter', 'validBefore', 'nonce', '__proto__');
  const field = fc
    .tuple(fields, fc.oneof(fc.jsonValue(), fc.string()))
    .map(
      ([name, value]) =>
        v2({ ...good, authorization: { ...good.authorization, [name]: value } })('PAYMENT-SIGNATURE') ?? '',
    );
  const signatures = fc
    .uint8Array({ minLength: 1, maxLength: 80 })
    .map(
      (bytes) =>
        v2({ ...good, signature: `0x${Buffer.from(bytes).toString('hex')}` })('PAYMENT-SIGNATURE') ?? '',
    );
  const deep = fc.nat(6000).map((depth) => Buffer.from('['.repeat(depth)).toString('base64'));
  const any = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    mutated,
    strange,
    replaced,
    field,
    signatures,
    deep,
  );
  const original = await presented(x402, v2(good));
  await fc.assert(
    fc.asyncProperty(any, fc.boolean(), async (value, first) => {
      const name = first ? 'PAYMENT-SIGNATURE' : 'X-PAYMENT';
      const read = await x402.protocol.read((asked) => (asked === name ? value : null), 'client');
      if (isRefused(read)) {
        assert.equal(read.refused, 'payment_required');
        assert.match((read.details as { reason: string }).reason, /^[a-z0-9_]+$/);
      } else if (read.signer === 'recovered') assert.equal(read.payloadHash, original.payloadHash);
    }),
    { numRuns: runs(2000) },
  );
});

function reasonOf(verdict: Allowed | Refused): string | null {
  return isRefused(verdict) ? (verdict.details as { reason: string }).reason : null;
}

function withV(signature: string, change: (v: number) => number): string {
  const v = change(Number.parseInt(signature.slice(-2), 16));
  return signature.slice(0, -2) + v.toString(16).padStart(2, '0');
}

/** The other valid signature of the same key: order minus s. */
function twin(signature: string): string {
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = order - BigInt(`0x${signature.slice(66, 130)}`);
  return withV(
    signature.slice(0, 66) + s.toString(16).padStart(64, '0') + signature.slice(130),
    (v) => 55 - v,
  );
}
