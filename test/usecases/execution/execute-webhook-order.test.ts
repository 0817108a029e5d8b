// What an execution asks, in which order, and what is never asked again of a request that was accepted once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALLOWED, refused } from '#src/domain/refusal.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { type CallChanges, DEMO, execute, paidWith } from '#test/support/given/given-call.ts';
import { PAYMENT_STREAM, paymentRejected } from '#test/support/given/given-events.ts';
import {
  isUnconfirmed,
  outcomeOf,
  paymentReserved,
  refusalOf,
  unknown,
} from '#test/support/given/given-payment.ts';
import { gate } from '#test/support/log/fakes-log.ts';
import { scriptedQuota, tracedSlots } from '#test/support/world/fakes-admission.ts';
import { given, type Shared, shared, targetRules, world } from '#test/support/world/fakes-world.ts';

const CLOSING = 'AttemptMade+JobCompleted+ReceiptSigned';
const blocking = { ...targetRules, mode: 'blocklist-quota', blockHosts: ['target.example'] } as const;
const counting = { ...blocking, blockHosts: [] };

test('a new paid call: judged, a slot, verified, one unit of quota, reserved, claimed, settled, started, sent, closed', async () => {
  const it = world(shared(), { rules: counting });
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.deepEqual(it.steps, [
    'payment',
    'dns',
    'look target-per-payer',
    'look target',
    'slot',
    'take payer',
    'look uncharged',
    'verify',
    'take target-per-payer',
    'take target',
    'PaymentReserved',
    'IdempotencyKeyClaimed',
    'settle',
    'PaymentSettled',
    'JobStarted',
    'send',
    CLOSING,
    'slot back',
  ]);
});

test('a new call in demo mode: no terms, no time window, no verify, no rate of its own', async () => {
  const it = world();
  assert.equal(outcomeOf(await execute(it, DEMO)), 'ran');
  assert.deepEqual(it.steps, [
    'dns',
    'slot',
    'IdempotencyKeyClaimed',
    'JobStarted',
    'send',
    CLOSING,
    'slot back',
  ]);
});

test('where everything is wrong: loop, the payment’s terms and time window, policy, DNS, quota, slots, rate, verify, in this order', async () => {
  const common = shared();
  const quota = scriptedQuota(common.steps);
  const it = world(common, { rules: blocking, quota, slots: tracedSlots(0, common.steps) });
  const late = refused('payment_required', 'Too late.', { details: { reason: 'expired' } });
  it.resolver.answer({ outcome: 'not_found' });
  quota.exhaust('target-per-payer', 1001);
  const via = { via: '1.0 other, 1.1 Relay.Example' };
  const refusalAfter = async (call: CallChanges = {}, process = it) => {
    common.steps.length = 0;
    const answer = await refusalOf(process, call);
    return [answer.refused, ...common.steps];
  };
  it.payments.scriptNew(late, late);
  assert.deepEqual(await refusalAfter(via), ['relay_loop']);
  assert.deepEqual(await refusalAfter(), ['payment_required', 'payment']);
  it.payments.scriptNew(ALLOWED);
  await refusalAfter();
  assert.deepEqual(await refusalAfter(), ['target_blocked', 'payment']);
  const mended = { rules: counting, resolver: it.resolver, quota };
  const full = world(common, { ...mended, slots: tracedSlots(0, common.steps) });
  assert.deepEqual(await refusalAfter({}, full), ['target_unresolvable', 'payment', 'dns']);
  it.resolver.answer({ outcome: 'addresses', addresses: ['203.0.114.7'] });
  const looked = ['payment', 'dns', 'look target-per-payer', 'look target'];
  assert.deepEqual(await refusalAfter({}, full), ['target_quota_exceeded', ...looked]);
  const paced = scriptedQuota(common.steps);
  const noSlots = world(common, { rules: counting, quota: paced, slots: tracedSlots(0, common.steps) });
  assert.deepEqual(await refusalAfter({}, noSlots), ['too_many_in_flight', ...looked]);
  paced.exhaust('payer', 1001);
  const fast = world(common, { rules: counting, quota: paced });
  assert.deepEqual(await refusalAfter({}, fast), [
    'rate_limited',
    ...looked,
    'slot',
    'take payer',
    'look uncharged',
    'slot back',
  ]);
  it.payments.scriptVerify({ outcome: 'invalid', reason: 'balance' });
  const admitted = ['slot', 'take payer', 'look uncharged', 'verify', 'slot back'];
  assert.deepEqual(await refusalAfter({}, world(common, { rules: counting })), [
    'payment_required',
    ...looked,
    ...admitted,
  ]);
  assert.deepEqual(common.trace, [], 'nothing was written, settled or sent');
});

test('a Via of other relays is no loop', async () => {
  assert.equal(outcomeOf(await execute(world(), { via: '1.1 other.example, 1.1 relay.example.org' })), 'ran');
});

test('unreadable as a target or as headers: 400 before the log is asked', async () => {
  const it = world();
  it.log.setAway(true);
  for (const request of [{ url: 'https://' }, { url: 'http://target.example/' }, { headers: { 'a b': 1 } }]) {
    assert.equal(outcomeOf(await execute(it, { request })), 'invalid_request');
  }
  assert.deepEqual(it.steps, []);
});

// ── known first ─────────────────────────────────────────────────────────────────────────────────────────

/** A process to which everything would be wrong: target blocked, DNS dead, quotas spent, no slot, payment expired. */
function hostile(common: Shared) {
  const quota = scriptedQuota(common.steps);
  for (const rule of ['payer', 'target', 'target-per-payer']) quota.exhaust(rule, 1000);
  const it = world(common, { rules: blocking, quota, slots: tracedSlots(0, common.steps) });
  it.resolver.answer({ outcome: 'failed', timedOut: true });
  const late = refused('payment_required', 'Too late.');
  it.payments.scriptNew(late, late, late);
  it.payments.scriptVerify({ outcome: 'unavailable' });
  common.steps.length = 0;
  return it;
}

for (const [why, first, repeat, outcome] of [
  ['a payment whose job is completed', {}, {}, 'replayed'],
  ['a key whose job is completed, with a new payment', {}, paidWith(otherPayment()), 'replayed'],
  ['a key in demo mode', DEMO, DEMO, 'replayed'],
  ['a known payment with another body', {}, { request: { body: 1 } }, 'payment_reused'],
  ['a known payment with another key', {}, { key: 'k2' }, 'payment_reused'],
  [
    'a known key with another body',
    {},
    paidWith(otherPayment(), { request: { body: 1 } }),
    'idempotency_conflict',
  ],
] as const) {
  test(`${why}: ${outcome}, whatever has become of target, DNS, quotas, slots, price, window and facilitator; none is asked`, async () => {
    const common = shared();
    assert.equal(outcomeOf(await execute(world(common), first)), 'ran');
    const later = hostile(common);
    assert.equal(outcomeOf(await execute(later, repeat)), outcome);
    assert.deepEqual(common.steps, []);
  });
}

test('idempotency_in_progress while the first runs, with nothing asked, and no slot for the one who waits', async () => {
  const common = shared();
  const it = world(common);
  const { frozen, reached, open } = gate();
  common.log.onNext('ReceiptSigned', frozen);
  const first = execute(it);
  await reached;
  const later = hostile(common);
  const answer = await refusalOf(later);
  assert.equal(answer.refused, 'idempotency_in_progress');
  assert.match(JSON.stringify(answer.details), /"jobId":"job_/);
  assert.deepEqual(common.steps, []);
  open();
  assert.equal((await first).kind, 'ran');
});

test('a resumed payment is not judged again: no terms, window, policy, DNS, quota or verify; a slot and its payer’s pace hold', async () => {
  const common = shared();
  common.payments.scriptSettle(unknown);
  await assert.rejects(execute(world(common)), isUnconfirmed);
  assert.equal(outcomeOf(await execute(hostile(common))), 'too_many_in_flight');
  const quota = scriptedQuota(common.steps);
  for (const rule of ['target', 'target-per-payer']) quota.exhaust(rule, 1000);
  const it = world(common, { rules: blocking, quota });
  it.resolver.answer({ outcome: 'not_found' });
  common.steps.length = 0;
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.deepEqual(common.steps, [
    'slot',
    'take payer',
    'lookUp',
    'SettlementRetried',
    'settle',
    'PaymentSettled',
    'JobStarted',
    'send',
    CLOSING,
    'slot back',
  ]);
});

test('a call that loses races goes in rounds, yet is judged, verified and counted once', async () => {
  const common = shared();
  const it = world(common, { rules: counting });
  let losses = 0;
  const lose = () =>
    common.log.onNext('PaymentReserved', async (store) => {
      losses++;
      if (losses < 3) lose();
      await given(common, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }), paymentRejected());
      return store();
    });
  lose();
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.equal(losses, 3);
  assert.deepEqual(it.payments.calls, { judge: 1, verify: 1, settle: 1, lookUp: 0 });
  assert.equal(it.resolver.asked.length, 1);
  for (const rule of ['payer', 'target', 'target-per-payer']) assert.equal(it.quota.taken(rule), 1);
  assert.equal(it.slots.inFlight(), 0);
});

// ── a decision's approval ───────────────────────────────────────────────────────────────────────────────

const approval = refused('decision_expired', 'Too old.');

test('a decision that does not approve: after loop, terms and time window, before policy and DNS; nothing is charged', async () => {
  const it = world(shared(), { rules: blocking });
  const late = refused('payment_required', 'Too late.', { details: { reason: 'expired' } });
  it.payments.scriptNew(late);
  const loop = { approval, via: '1.1 relay.example' };
  assert.equal(outcomeOf(await execute(it, loop)), 'relay_loop');
  assert.equal(outcomeOf(await execute(it, { approval })), 'payment_required');
  it.steps.length = 0;
  assert.equal(outcomeOf(await execute(it, { approval })), 'decision_expired');
  assert.deepEqual(it.steps, ['payment']);
});

test('a decision that has expired since locks no caller out: its replay and its resume do not read it', async () => {
  const it = world();
  it.payments.scriptSettle(unknown);
  await assert.rejects(execute(it), isUnconfirmed);
  assert.equal(outcomeOf(await execute(it, { approval })), 'ran');
  assert.equal(outcomeOf(await execute(it, { approval })), 'replayed');
  assert.equal(outcomeOf(await execute(it, paidWith(otherPayment(), { approval }))), 'replayed');
});
