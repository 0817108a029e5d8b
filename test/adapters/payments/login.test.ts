// The login at a facilitator that checks it: tokens of CDP's form, bound to one request and accepted once; static headers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { loginHeaders } from '#src/adapters/payments/login.ts';
import { facilitatorDouble, invalid, unsettled } from '#test/support/chain/facilitator-double.ts';
import { API_KEY_KINDS, cdpGuard, headersGuard, newApiKey } from '#test/support/chain/facilitator-login.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import { lab, loginOf, payloadOf, presented, v2, wallet } from './lab.ts';

const CLOCK = { now: Date.now };

for (const kind of API_KEY_KINDS) {
  test(`${kind}: verify, settle and health log in, each request with a token of its own`, async () => {
    const key = newApiKey(kind);
    const guard = cdpGuard(() => [key]);
    await using double = await facilitatorDouble(undefined, guard);
    const facilitatorUrl = `${double.url}/platform/v2/x402`;
    const x402 = await lab({ x402: { facilitatorUrl, login: loginOf(key) } });
    assert.deepEqual(await x402.payments.health(), { ok: true });
    const payment = await presented(x402, v2(await payloadOf(wallet())));
    assert.deepEqual(await x402.payments.verify(payment), { outcome: 'valid' });
    assert.deepEqual(await x402.payments.verify(payment), { outcome: 'valid' });
    assert.equal((await x402.payments.settle(payment)).outcome, 'settled');
    assert.equal(new Set(guard.seen).size, 4);
    assert.deepEqual(
      x402.lines.filter(({ message }) => message.includes('facilitator')),
      [],
    );
  });

  test(`${kind}: the token is the provider’s, member by member`, async () => {
    const key = newApiKey(kind);
    const nowMs = 1_790_000_000_999;
    const login = await loginHeaders(loginOf(key), { now: () => nowMs });
    const url = 'https://api.cdp.coinbase.com/platform/v2/x402/verify';
    const headers = await login({ method: 'POST', url });
    assert.deepEqual(Object.keys(headers), ['authorization']);
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
    const { nonce, ...header } = decodeProtectedHeader(token) as Record<string, unknown>;
    assert.deepEqual(header, { alg: key.algorithm, kid: key.id, typ: 'JWT' });
    assert.match(String(nonce), /^[0-9a-f]{32}$/);
    assert.deepEqual(decodeJwt(token), {
      sub: key.id,
      iss: 'cdp',
      uris: ['POST api.cdp.coinbase.com/platform/v2/x402/verify'],
      iat: 1_790_000_000,
      nbf: 1_790_000_000,
      exp: 1_790_000_120,
    });
  });
}

test('a wrong key, an unknown id, no login: nothing is verified, settled or charged; log and health name it', async () => {
  const key = newApiKey('ed25519');
  const others = [
    loginOf({ ...newApiKey('ed25519'), id: key.id }),
    loginOf({ ...newApiKey('sec1'), id: key.id }),
    loginOf({ ...key, id: 'organizations/o/apiKeys/other' }),
    { kind: 'headers', headers: { authorization: 'Bearer none' } } as const,
    null,
  ];
  for (const login of others) {
    await using double = await facilitatorDouble(
      undefined,
      cdpGuard(() => [key]),
    );
    const x402 = await lab({ x402: { facilitatorUrl: double.url, login } });
    assert.deepEqual(await x402.payments.health(), { ok: false, problem: 'login_refused' });
    const payment = await presented(x402, v2(await payloadOf(wallet())));
    assert.deepEqual(await x402.payments.verify(payment), { outcome: 'unavailable' });
    assert.equal((await x402.payments.settle(payment)).outcome, 'unknown');
    assert.equal(double.ledger.size, 0);
    const [line, ...more] = x402.lines.filter(({ message }) => message.includes('login'));
    assert.deepEqual(
      [line?.level, line?.fields, more],
      ['error', { operation: 'supported', code: 'status_401', condition: 'login_refused' }, []],
    );
    assert.match(line?.message ?? '', /The facilitator refuses our login/);
  }
});

test('a clock ahead or behind: the token is not yet valid, or expired', async () => {
  const key = newApiKey('pkcs8');
  for (const skewMs of [600_000, -600_000]) {
    await using double = await facilitatorDouble(
      undefined,
      cdpGuard(() => [key]),
    );
    const clock = manualClock(Date.now() + skewMs);
    const x402 = await lab({ x402: { facilitatorUrl: double.url, login: loginOf(key) }, clock });
    assert.deepEqual(await x402.payments.health(), { ok: false, problem: 'login_refused' });
    const clocks = x402.lines.filter(({ message }) => message.includes('clock of the facilitator differs'));
    assert.equal(clocks.length, 1, 'the cause is logged');
  }
});

test('static headers are sent with every request', async () => {
  const headers = { 'x-api-key': 'a static key', 'x-tenant': 'relay' };
  const guard = headersGuard(() => headers);
  await using double = await facilitatorDouble(undefined, guard);
  const x402 = await lab({ x402: { facilitatorUrl: double.url, login: { kind: 'headers', headers } } });
  assert.deepEqual(await x402.payments.health(), { ok: true });
  const payment = await presented(x402, v2(await payloadOf(wallet())));
  assert.deepEqual(await x402.payments.verify(payment), { outcome: 'valid' });
  assert.equal((await x402.payments.settle(payment)).outcome, 'settled');
  assert.deepEqual(guard.seen, Array(3).fill('a static key relay'));
});

test('a facilitator that repeats our login as its reason: no part of it is returned or logged', async () => {
  const secret = 'sk_live_51h8sy7twq0z9kd3f';
  const guard = headersGuard(() => ({ 'x-api-key': secret }));
  await using double = await facilitatorDouble(undefined, guard);
  const login = { kind: 'headers', headers: { 'x-api-key': secret } } as const;
  const x402 = await lab({ x402: { facilitatorUrl: double.url, login } });
  const payment = await presented(x402, v2(await payloadOf(wallet())));
  for (const echo of [secret, secret.slice(8), `invalid_${secret}`, `Bearer ${secret}`]) {
    double.scriptVerify(invalid(echo));
    double.scriptSettle(unsettled(echo));
    assert.deepEqual(await x402.payments.verify(payment), { outcome: 'invalid', reason: 'invalid' });
    const unknown = { outcome: 'unknown', cause: 'settlement_failed', transaction: null };
    assert.deepEqual(await x402.payments.settle(payment), unknown);
  }
  assert.ok(!JSON.stringify(x402.lines).includes(secret.slice(8)));
});

test('without a login no header of one is sent', async () => {
  assert.deepEqual(await (await loginHeaders(null, CLOCK))({ method: 'GET', url: 'https://f.example/' }), {});
});

test('a login that is sent in clear text beyond this machine is warned of', async () => {
  const login = { kind: 'headers', headers: { 'x-api-key': 'k' } } as const;
  const warned = async (facilitatorUrl: string) =>
    (await lab({ x402: { facilitatorUrl, login } })).lines.some(({ message }) => message.includes('https'));
  for (const url of ['http://facilitator.example', 'http://10.0.0.1:8080/x'])
    assert.ok(await warned(url), url);
  for (const url of [
    'https://facilitator.example',
    'http://127.0.0.1:1',
    'http://localhost:1',
    'http://[::1]:1',
  ])
    assert.ok(!(await warned(url)), url);
});
