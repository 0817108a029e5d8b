// Slots of the execution: refused before anything is asked of a facilitator, and given back however a call ends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '#src/domain/limits.ts';
import { otherPayment, presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { DEMO, execute, paidWith } from '#test/support/given/given-call.ts';
import { outcomeOf, refusalOf, rejected, unknown } from '#test/support/given/given-payment.ts';
import { gate, unavailable } from '#test/support/log/fakes-log.ts';
import { letPass, quiet, succeeding } from '#test/support/world/fakes.ts';
import { enterAll, tracedSlots } from '#test/support/world/fakes-admission.ts';
import { shared, type World, world } from '#test/support/world/fakes-world.ts';

/** Every call to the target hangs until opened. */
function hanging(it: World) {
  const { frozen, open } = gate();
  it.outbound.script(...Array.from({ length: 50 }, () => () => frozen(async () => succeeding())));
  return open;
}
const payment = (i: number, payer = presentedPayment().payer) => ({ ...otherPayment(String(i)), payer });

test('too_many_in_flight: a payer has 4 calls in flight; the fifth is refused before verify, another payer is not', async () => {
  const it = world();
  const open = hanging(it);
  const calls = Array.from({ length: LIMITS.inFlightPerPayer.max }, (_, i) =>
    execute(it, paidWith(payment(i), { key: null })),
  );
  await quiet();
  assert.equal(it.outbound.sent.length, 4);
  const fifth = await refusalOf(it, paidWith(payment(5), { key: null }));
  assert.deepEqual([fifth.refused, fifth.retryAfterSeconds], ['too_many_in_flight', 1]);
  assert.equal(it.payments.calls.verify, 4);
  const other = execute(it, paidWith(payment(6, '0x3333'), { key: null }));
  open();
  for (const answer of await Promise.all([...calls, other])) assert.equal(answer.kind, 'ran');
  assert.equal(outcomeOf(await execute(it, paidWith(payment(5), { key: null }))), 'ran');
});

test('too_many_in_flight: MAX_IN_FLIGHT over all; in demo mode it is the only limit', async () => {
  const common = shared();
  const it = world(common, { slots: tracedSlots(6) });
  const open = hanging(it);
  const calls = Array.from({ length: 6 }, () => execute(it, { ...DEMO, key: null }));
  await quiet();
  assert.equal(it.outbound.sent.length, 6);
  assert.equal(outcomeOf(await execute(it, { ...DEMO, key: null })), 'too_many_in_flight');
  assert.equal(outcomeOf(await execute(it)), 'too_many_in_flight');
  assert.equal(it.payments.calls.verify, 0);
  open();
  for (const answer of await Promise.all(calls)) assert.equal(answer.kind, 'ran');
});

test('rate_limited: 30 calls a minute per payer, with the seconds until its window ends', async () => {
  const it = world();
  for (let i = 0; i < LIMITS.perMinutePerPayer.max; i++) {
    assert.equal(outcomeOf(await execute(it, paidWith(payment(i), { key: null }))), 'ran');
  }
  const answer = await refusalOf(it, paidWith(payment(99), { key: null }));
  assert.deepEqual([answer.refused, answer.retryAfterSeconds], ['rate_limited', 60]);
  assert.equal(it.payments.calls.verify, 30);
  assert.equal(outcomeOf(await execute(it, paidWith(payment(99, '0x3333'), { key: null }))), 'ran');
  const [{ rule, key } = assert.fail()] = it.quota.calls;
  assert.deepEqual([rule, key], [{ name: 'payer', windowMs: 60_000, maxRequests: 30 }, payment(0).payer]);
  assert.equal(it.slots.inFlight(), 0);
});

// ── given back ──────────────────────────────────────────────────────────────────────────────────────────

const broken = () => {
  throw new Error('a bug');
};
for (const [why, spoil, end] of [
  ['the job ran', () => {}, 'ran'],
  [
    'verify says no',
    (it) => it.payments.scriptVerify({ outcome: 'invalid', reason: 'x' }),
    'payment_required',
  ],
  ['the settlement is rejected', (it) => it.payments.scriptSettle(rejected), 'payment_required'],
  ['the payer is too fast', (it) => it.quota.exhaust('payer', 1), 'rate_limited'],
  ['the quota store breaks', (it) => it.quota.breakNextTake(), /quota store broke/],
  [
    'the facilitator is unavailable',
    (it) => it.payments.scriptVerify({ outcome: 'unavailable' }),
    /not be verified/,
  ],
  ['verify throws', (it) => it.payments.scriptVerify(broken), /a bug/],
  ['the settlement is unknown', (it) => it.payments.scriptSettle(unknown), /not confirmed/],
  ['settle throws', (it) => it.payments.scriptSettle(broken), /a bug/],
  ['the call throws', (it) => it.outbound.script(broken), 'ran'],
] as [string, (it: World) => void, string | RegExp][]) {
  test(`a slot is given back where ${why}, and a verify's too`, async () => {
    const it = world();
    spoil(it);
    if (typeof end === 'string') assert.equal(outcomeOf(await execute(it)), end);
    else await assert.rejects(letPass(it.clock, execute(it)), end);
    assert.equal(it.slots.inFlight(), 0);
    enterAll(it.deps.verifies);
  });
}

test('a slot is kept until an append is known, also after its caller got a 503: what waits is bounded', async () => {
  const it = world();
  it.log.onNext('PaymentReserved', async (store) => {
    it.log.setAway(true);
    return unavailable(store);
  });
  await assert.rejects(
    letPass(it.clock, execute(it)),
    /event log is unavailable: for this call nothing was sent/,
  );
  assert.equal(it.slots.inFlight(), 1);
  it.log.setAway(false);
  for (let i = 0; i < 5; i++) {
    it.clock.advance(2000);
    await quiet();
  }
  assert.equal(it.slots.inFlight(), 0);
  assert.deepEqual([it.payments.calls.settle, it.outbound.sent.length], [0, 0]);
});

test('a slot is held as long as the job runs, also where its caller has got its 503 already', async () => {
  const it = world();
  const open = hanging(it);
  await assert.rejects(letPass(it.clock, execute(it)), /event log is unavailable/);
  assert.equal(it.slots.inFlight(), 1);
  open();
  await quiet();
  assert.equal(it.slots.inFlight(), 0);
});
