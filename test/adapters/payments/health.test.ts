import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Behaviour, facilitatorDouble, faults, json } from '#test/support/facilitator-double.ts';
import { manualClock } from '#test/support/fakes.ts';
import { lab, UNREACHABLE_URL } from './lab.ts';

const said = (kind: object) => ({
  kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453', ...kind }],
  extensions: [],
});
const kinds =
  (kind: object): Behaviour =>
  () =>
    json(said(kind));

test('health is ok if the facilitator supports our kind of payment', async () => {
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

test('health is cached for ten seconds, with one request at a time', async () => {
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

test('health of an unreachable or hanging facilitator is not ok, within two seconds', async () => {
  assert.deepEqual(await (await lab({ x402: { facilitatorUrl: UNREACHABLE_URL } })).payments.health(), {
    ok: false,
  });
  await using double = await facilitatorDouble();
  double.scriptSupported(faults.never);
  const { payments } = await lab({ x402: { facilitatorUrl: double.url, facilitatorTimeoutMs: 60_000 } });
  assert.deepEqual(await payments.health(), { ok: false });
});

test('a clock that differs from the facilitator’s is logged once', async () => {
  await using double = await facilitatorDouble();
  const clock = manualClock(Date.now() - 60_000);
  const { payments, lines } = await lab({
    x402: { facilitatorUrl: double.url, rpcUrl: UNREACHABLE_URL },
    clock,
  });
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await payments.health(), { ok: true });
    clock.advance(10_000);
  }
  const logged = lines.filter(({ message }) => message.includes('clock'));
  assert.equal(logged.length, 1);
  const { skewSeconds = 0 } = (logged[0]?.fields ?? {}) as { skewSeconds?: number };
  assert.ok(skewSeconds <= -58 && skewSeconds >= -62, String(skewSeconds));
  const inTime = await lab({ x402: { facilitatorUrl: double.url, rpcUrl: UNREACHABLE_URL } });
  await inTime.payments.health();
  assert.deepEqual(inTime.lines, []);
});
