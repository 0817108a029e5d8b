import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { FacilitatorProblem } from '#src/domain/monitoring/health.ts';
import {
  type Behaviour,
  facilitatorDouble,
  faults,
  invalid,
  json,
} from '#test/support/chain/facilitator-double.ts';
import { newApiKey } from '#test/support/chain/facilitator-login.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import { lab, loginOf, payloadOf, presented, UNREACHABLE_URL, v2, wallet } from './lab.ts';

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
  const cases: readonly [Behaviour, FacilitatorProblem | null][] = [
    [kinds({}), null],
    [kinds({ network: 'eip155:*' }), null],
    [kinds({ network: 'eip155:84532' }), 'unsupported'],
    [kinds({ x402Version: 1, network: 'base' }), 'unsupported'],
    [kinds({ x402Version: 1 }), 'unsupported'],
    [kinds({ scheme: 'upto' }), 'unsupported'],
    [() => json({ kinds: [] }), 'unsupported'],
    [() => json({}), 'failing'],
    [() => json(said({}), 500), 'failing'],
    [faults.html500, 'failing'],
    [faults.html200, 'failing'],
    [faults.cut, 'no_answer'],
    [faults.tooMany, 'failing'],
    [() => json({}, 401), 'login_refused'],
    [() => json({}, 403), 'login_refused'],
    [() => json(said({}), 401), 'login_refused'],
    [() => json(said({}), 403), 'login_refused'],
    [kinds({}), null],
  ];
  for (const [behaviour, problem] of cases) {
    double.scriptSupported(behaviour);
    assert.deepEqual(await payments.health(), problem === null ? { ok: true } : { ok: false, problem });
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
  const none = { ok: false, problem: 'no_answer' };
  const { payments: unreached } = await lab({ x402: { facilitatorUrl: UNREACHABLE_URL } });
  assert.deepEqual(await unreached.health(), none);
  await using double = await facilitatorDouble();
  double.scriptSupported(faults.never);
  const { payments } = await lab({ x402: { facilitatorUrl: double.url, facilitatorTimeoutMs: 60_000 } });
  assert.deepEqual(await payments.health(), none);
});

const KYT = 'invalid_exact_evm_payload_authorization_from_address_kyt';

test('health is not ok while paid calls fail, whatever the cheaper question is answered', async () => {
  await using double = await facilitatorDouble();
  const clock = manualClock(Date.now());
  const { payments, lines, ...x402 } = await lab({ x402: { facilitatorUrl: double.url }, clock });
  const payment = await presented({ payments, ...x402 }, v2(await payloadOf(wallet())));
  const log = () =>
    lines
      .filter(({ message }) => /^the facilitator .*(answer|login)/i.test(message))
      .map(({ level }) => level);
  assert.deepEqual(await payments.health(), { ok: true });

  double.scriptVerify(faults.html500);
  await payments.verify(payment);
  assert.deepEqual(await payments.health(), { ok: false, problem: 'failing' });
  clock.advance(3_600_000);
  assert.deepEqual(await payments.health(), { ok: false, problem: 'failing' }, 'until one works');
  await payments.verify(payment);
  assert.deepEqual(await payments.health(), { ok: true }, 'a later call worked');
  assert.deepEqual(log(), ['warn', 'info'], 'its beginning and its end');

  double.scriptVerify(() => json({ error: 'who are you?' }, 401));
  await payments.verify(payment);
  const refused = { ok: false, problem: 'login_refused' };
  assert.deepEqual(await payments.health(), refused);
  clock.advance(3_600_000);
  assert.deepEqual(await payments.health(), refused, 'it counts until a call is accepted');
  double.scriptVerify(() => json({ error: 'who are you?' }, 403));
  await payments.verify(payment);
  assert.deepEqual(log(), ['warn', 'info', 'error']);
  // A verdict on the payment is no refusal of the login, whatever its status.
  double.scriptVerify(invalid(KYT, 403));
  assert.deepEqual(await payments.verify(payment), { outcome: 'invalid', reason: KYT });
  assert.deepEqual(await payments.health(), { ok: true });
  assert.deepEqual(log(), ['warn', 'info', 'error', 'info']);
});

test('a failed settle is forgotten only after a settle that works, and a failed verify after a verify', async () => {
  await using double = await facilitatorDouble();
  const { payments, lines, ...x402 } = await lab({ x402: { facilitatorUrl: double.url } });
  const payment = await presented({ payments, ...x402 }, v2(await payloadOf(wallet())));
  const [failing, refused] = (['failing', 'login_refused'] as const).map((problem) => ({
    ok: false,
    problem,
  }));
  const ended = () => lines.filter(({ message }) => /facilitator answers/i.test(message)).length;

  double.scriptSettle(faults.html500);
  await payments.settle(payment);
  assert.equal((await payments.verify(payment)).outcome, 'valid');
  assert.deepEqual(await payments.health(), failing, 'a verify that works settles nothing');
  double.scriptVerify(() => json({}, 401));
  await payments.verify(payment);
  assert.deepEqual(await payments.health(), refused, 'the newest of both');
  await payments.settle(payment);
  assert.deepEqual(await payments.health(), refused, 'a settle that works verifies nothing');
  double.scriptSettle(faults.html500);
  await payments.settle(payment);
  await payments.verify(payment);
  assert.deepEqual(await payments.health(), failing);
  assert.equal(ended(), 0);
  await payments.settle(payment);
  assert.deepEqual(await payments.health(), { ok: true });
  assert.equal(ended(), 1);
});

test('a settlement whose login is refused is unknown: only the chain shows that it moved nothing', async () => {
  await using double = await facilitatorDouble();
  const x402 = await lab({ x402: { facilitatorUrl: double.url } });
  const payment = await presented(x402, v2(await payloadOf(wallet())));
  for (const behaviour of [
    () => json({ error: 'who are you?' }, 403),
    () => json({ success: false, errorReason: 'insufficient_funds' }, 401),
  ]) {
    double.scriptSettle(behaviour);
    const { outcome, ...rest } = await x402.payments.settle(payment);
    assert.equal(outcome, 'unknown');
    assert.equal('cause' in rest && rest.cause, 'facilitator_login_refused');
    assert.deepEqual(await x402.payments.health(), { ok: false, problem: 'login_refused' });
  }
});

test('a defect of ours is logged as one: it is no outage of the facilitator', async () => {
  await using double = await facilitatorDouble();
  const clock = systemClock();
  let broken = false;
  const now = () => {
    if (broken) throw new TypeError('a defect');
    return clock.now();
  };
  const key = newApiKey('ed25519');
  const x402 = await lab({
    x402: { facilitatorUrl: double.url, login: loginOf(key) },
    clock: { ...clock, now },
  });
  const payment = await presented(x402, v2(await payloadOf(wallet())));
  broken = true;
  await assert.rejects(x402.payments.verify(payment), /a defect/);
  const settled = await x402.payments.settle(payment);
  assert.equal(settled.outcome === 'unknown' && settled.cause, 'internal_error');
  assert.deepEqual(await x402.payments.health(), { ok: false, problem: 'internal_error' });
  assert.deepEqual(
    x402.lines.flatMap(({ level }) => (level === 'bug' ? [level] : [])),
    ['bug', 'bug'],
  );
  assert.deepEqual(double.calls, { verify: 0, settle: 0, supported: 0 });
});

test('a clock that differs from the facilitator’s is logged once', async () => {
  await using double = await facilitatorDouble();
  const clock = manualClock(Date.now() - 60_000);
  const { payments, lines } = await lab({
    x402: { facilitatorUrl: double.url },
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
  const inTime = await lab({ x402: { facilitatorUrl: double.url } });
  await inTime.payments.health();
  assert.deepEqual(inTime.lines, []);
});
