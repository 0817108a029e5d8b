import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Behaviour, facilitatorDouble, faults, json } from '#test/support/facilitator-double.ts';
import { manualClock } from '#test/support/fakes.ts';
import { lab, NOBODY } from './lab.ts';

const said = (kind: object) => ({
  kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453', ...kind }],
  extensions: [],
});
const kinds =
  (kind: object): Behaviour =>
  () =>
    json(said(kind));

test('the facilitator is well where it knows our kind of payment', async () => {
  await using double = await facilitatorDouble();
  const clock = manualClock(Date.now());
  const { payments } = await lab({ x402: { facilitatorUrl: double.url }, clock });
  const cases: readonly [Behaviour, boolean][] = [
    [kinds({}), true],
    [kinds({ network: 'eip155:*' }), true],
    [kinds({ network: 'eip155:84532' }), false],
    [kinds({ x402Version: 1, network: 'base' }), false],
    [kinds({ x402Version: 1 }), false],
    [kinds({ scheme: 'upto' }), false],
    [() => json({ kinds: [] }), false],
    [() => json({}), false],
    [() => json(said({}), 500), false],
    [faults.html500, false],
    [faults.html200, false],
    [faults.cut, false],
    [faults.tooMany, false],
  ];
  for (const [behaviour, ok] of cases) {
    double.scriptSupported(behaviour);
    assert.deepEqual(await payments.health(), { ok });
    clock.advance(10_000);
  }
  assert.equal(double.calls.supported, cases.length);
});

test('its answer is remembered for ten seconds, and asked for once at a time', async () => {
  await using double = await facilitatorDouble();
  const clock = manualClock(Date.now());
  const { payments } = await lab({ x402: { facilitatorUrl: double.url }, clock });
  await Promise.all(Array.from({ length: 10 }, () => payments.health()));
  clock.advance(9999);
  await payments.health();
  assert.equal(double.calls.supported, 1);
  clock.advance(1);
  await payments.health();
  assert.equal(double.calls.supported, 2);
});

test('one that is away or hangs is not well, within two seconds', async () => {
  assert.deepEqual(await (await lab({ x402: { facilitatorUrl: NOBODY } })).payments.health(), { ok: false });
  await using double = await facilitatorDouble();
  double.scriptSupported(faults.never);
  const { payments } = await lab({ x402: { facilitatorUrl: double.url, facilitatorTimeoutMs: 60_000 } });
  assert.deepEqual(await payments.health(), { ok: false });
});

test('a clock that differs from the facilitator’s is told once', async () => {
  await using double = await facilitatorDouble();
  const clock = manualClock(Date.now() - 60_000);
  const { payments, lines } = await lab({ x402: { facilitatorUrl: double.url, rpcUrl: NOBODY }, clock });
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await payments.health(), { ok: true });
    clock.advance(10_000);
  }
  const told = lines.filter(({ message }) => message.includes('clock'));
  assert.equal(told.length, 1);
  const { skewSeconds = 0 } = (told[0]?.fields ?? {}) as { skewSeconds?: number };
  assert.ok(skewSeconds <= -58 && skewSeconds >= -62, String(skewSeconds));
  const inTime = await lab({ x402: { facilitatorUrl: double.url, rpcUrl: NOBODY } });
  await inTime.payments.health();
  assert.deepEqual(inTime.lines, []);
});

test('without a way to the chain the operator is told at the start', async () => {
  const without = await lab();
  assert.deepEqual(
    without.lines.map(({ level }) => level),
    ['warn'],
  );
  assert.match(without.lines[0]?.message ?? '', /X402_RPC_URL/);
  assert.deepEqual((await lab({ x402: { rpcUrl: NOBODY } })).lines, []);
});
