// Stock clients sign again on every repeat. A repeat with the idempotency key of an unserved payment first reconciles that
// payment: it is served, or the new payment is taken, or the caller gets a 409 that is true.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { otherPayment, presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { type CallChanges, execute, KEY_STREAM, paidWith } from '#test/support/given/given-call.ts';
import { hex, PAYMENT_STREAM, T0 } from '#test/support/given/given-events.ts';
import {
  isUnconfirmed,
  outcomeOf,
  paymentTypes,
  ran,
  refusalOf,
  SETTLEMENT_WATCH,
  unknown,
} from '#test/support/given/given-payment.ts';
import { begin, refund } from '#test/support/given/given-refund.ts';
import { dies, gate } from '#test/support/log/fakes-log.ts';
import { quiet } from '#test/support/world/fakes.ts';
import { audited, targetRules, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

const NEW_STREAM = `payment-${otherPayment().hash}`;
const again = (more: CallChanges = {}) => paidWith(otherPayment(), more);
const firstJob = ({ log }: Pick<World, 'log'>) => String(log.events[0]?.data.jobId);
const paid: ChainFinding = { outcome: 'paid', transaction: '0xfirst' };
/** Seconds from T0 to the first at which the sample payment can never be used. */
const OVER = Number(presentedPayment().validBefore) + 61 - T0 / 1000;

/** A first call whose settlement has no conclusive answer. `moved`: the money moved all the same. */
async function lostSettlement(moved: boolean) {
  const it = world();
  it.payments.scriptSettle((payment) => {
    if (moved) it.payments.move(payment);
    return unknown;
  });
  it.payments.scriptLookUp({ outcome: 'unavailable' });
  await assert.rejects(execute(it), isUnconfirmed);
  it.payments.calls.lookUp = 0;
  return it;
}

for (const [where, process] of [
  ['the same process', (it: World) => it],
  ['another process', (it: World) => world(it.common)],
] as const) {
  test(`paid, on ${where}: the first payment’s job runs; the new one is neither verified nor settled, and replays from then on`, async () => {
    const first = await lostSettlement(true);
    const it = process(first);
    it.payments.scriptLookUp(paid);
    const answer = await ran(it, again());
    const { job, payment } = answer;
    assert.deepEqual([job.id, payment?.transaction], [firstJob(it), '0xfirst']);
    assert.equal(payment?.payloadHash, presentedPayment().payloadHash);
    assert.deepEqual(await it.log.readStream(NEW_STREAM), []);
    assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementUnknown', 'PaymentSettled']);
    const { verify, settle, lookUp } = it.payments.calls;
    assert.deepEqual([verify, settle, lookUp, it.payments.ledger.size], [1, 1, 1, 1]);
    assert.equal((await audited(it, job.id)).ok, true);
    for (const call of [again(), paidWith(otherPayment('5')), {}]) {
      assert.equal(outcomeOf(await execute(it, call)), 'replayed');
    }
    assert.equal(first.outbound.sent.length + (it === first ? 0 : it.outbound.sent.length), 1);
    assert.equal(it.slots.inFlight(), 0);
  });
}

test('paid, whatever has become of policy, quota, time window and facilitator: it was accepted once', async () => {
  const { common } = await lostSettlement(true);
  const it = world(common, {
    rules: { ...targetRules, mode: 'blocklist-quota', blockHosts: ['target.example'] },
  });
  it.payments.scriptVerify({ outcome: 'unavailable' });
  it.payments.scriptLookUp(paid);
  assert.equal(outcomeOf(await execute(it, again())), 'ran');
  assert.deepEqual([it.payments.calls.judge, it.resolver.asked], [1, []]);
});

test('settled, and the process died before JobStarted: the new header executes it, and no one is asked', async () => {
  const dying = world();
  dying.log.onNext('JobStarted', dies('before'));
  await assert.rejects(execute(dying));
  const it = world(dying.common);
  const answer = await ran(it, again());
  assert.equal(answer.job.id, firstJob(it));
  assert.deepEqual([it.payments.calls.lookUp, it.payments.calls.verify, it.payments.ledger.size], [0, 1, 1]);
});

for (const [why, finding] of [
  ['cancelled', { outcome: 'cancelled' }],
  ['spent elsewhere', { outcome: 'spent_elsewhere' }],
  ['unused past its end', { outcome: 'unused', chainTimeSeconds: T0 / 1000 + OVER }],
] as const) {
  test(`never payable (${why}): the key is released, and the new payment buys a job of its own`, async () => {
    const it = await lostSettlement(false);
    it.payments.scriptLookUp(finding);
    const answer = await ran(it, again());
    assert.notEqual(answer.job.id, firstJob(it));
    assert.equal((await paymentTypes(it)).at(-1), 'PaymentRejected');
    assert.deepEqual(await typesIn(it, NEW_STREAM), ['PaymentReserved', 'PaymentSettled']);
    assert.deepEqual(await typesIn(it, KEY_STREAM), [
      'IdempotencyKeyClaimed',
      'IdempotencyKeyReleased',
      'IdempotencyKeyClaimed',
    ]);
    assert.equal(it.payments.ledger.size, 1);
    assert.equal(it.slots.inFlight(), 0);
  });
}

for (const [why, finding] of [
  ['the chain does not answer', { outcome: 'unavailable' }],
  ['unused, and still valid', { outcome: 'unused', chainTimeSeconds: T0 / 1000 + OVER - 1 }],
] as const) {
  test(`idempotency_in_progress: not provable yet (${why}): nothing is charged, verified or written, and no job is named`, async () => {
    const it = await lostSettlement(false);
    const before = it.log.events.length;
    it.payments.scriptLookUp(finding);
    const answer = await refusalOf(it, again());
    const { refused, message, details, retryAfterSeconds } = answer;
    assert.equal(refused, 'idempotency_in_progress');
    assert.match(
      message,
      /unconfirmed, and nothing was charged for this call: repeat with the payment header/,
    );
    assert.match(message, /or with any payment after 2026-/);
    assert.deepEqual(details, { paymentState: 'unconfirmed' });
    assert.equal(retryAfterSeconds, OVER);
    assert.deepEqual([it.log.events.length, it.payments.calls.verify], [before, 1]);
    assert.equal(outcomeOf(await execute(it)), 'ran', 'its own header still settles it');
  });
}

test('idempotency_in_progress: a settlement that may be under way is left alone for 45 s, then it is looked up', async () => {
  const it = world();
  const { frozen, open } = gate();
  it.payments.scriptSettle((payment) => frozen(async () => it.payments.move(payment)));
  const first = execute(it);
  await quiet();
  const other = world(it.common);
  for (const wait of [0, SETTLEMENT_WATCH - 1]) {
    other.clock.advance(wait);
    const answer = await refusalOf(other, again());
    assert.deepEqual(
      [answer.refused, answer.details, answer.retryAfterSeconds],
      ['idempotency_in_progress', { paymentState: 'reserved' }, 2],
    );
  }
  assert.equal(it.payments.calls.lookUp, 0);
  other.clock.advance(1);
  other.payments.scriptLookUp(paid);
  assert.equal(outcomeOf(await execute(other, again())), 'ran');
  open();
  assert.equal(outcomeOf(await first), 'replayed');
  assert.deepEqual([it.payments.ledger.size, it.outbound.sent.length + other.outbound.sent.length], [1, 1]);
});

test('idempotency_conflict: another request with the key looks nothing up', async () => {
  const it = await lostSettlement(true);
  assert.equal(outcomeOf(await execute(it, again({ request: { body: 'other' } }))), 'idempotency_conflict');
  assert.equal(it.payments.calls.lookUp, 0);
});

test('payment_required: a contract wallet’s repeat is verified before anything is looked up for it', async () => {
  const it = await lostSettlement(true);
  it.payments.scriptVerify({ outcome: 'invalid', reason: 'invalid_signature' });
  const forged = paidWith({ ...otherPayment(), signer: 'contract', payloadHash: hex('0') });
  assert.equal(outcomeOf(await execute(it, forged)), 'payment_required');
  assert.deepEqual([it.payments.calls.lookUp, (await paymentTypes(it)).at(-1)], [0, 'SettlementUnknown']);
});

test('a holder’s payment that is being reconciled counts once among its payer’s unconfirmed ones', async () => {
  const it = await lostSettlement(false);
  it.payments.scriptLookUp({ outcome: 'unavailable' });
  assert.equal(outcomeOf(await execute(it, again())), 'idempotency_in_progress');
  assert.deepEqual(it.unconfirmed.waiting(presentedPayment().payer, 'none'), [PAYMENT_STREAM]);
  it.payments.scriptLookUp(paid);
  assert.equal(outcomeOf(await execute(it, again())), 'ran');
  assert.deepEqual(it.unconfirmed.waiting(presentedPayment().payer, 'none'), []);
});

// ── calls that race for one key ─────────────────────────────────────────────────────────────────────────

test('of calls that race for one key with payments of their own, one is verified; the next continues if that one is refused', async () => {
  const it = world();
  it.payments.scriptVerify({ outcome: 'invalid', reason: 'insufficient_funds' });
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, i) => execute(it, paidWith(otherPayment(String(i))))),
  );
  const outcomes = answers.map(outcomeOf);
  const count = (outcome: string) => outcomes.filter((one) => one === outcome).length;
  assert.deepEqual([count('payment_required'), count('ran')], [1, 1]);
  assert.equal(count('idempotency_in_progress') + count('replayed'), 2);
  assert.deepEqual([it.payments.calls.verify, it.payments.ledger.size], [2, 1]);
});

// ── refunded before its job started ─────────────────────────────────────────────────────────────────────

/** Charged, and the process ended before the job started. */
async function unserved() {
  const dying = world();
  dying.log.onNext('JobStarted', dies('before'));
  await assert.rejects(execute(dying));
  return world(dying.common);
}

test('refunded: a new payment takes the idempotency key; the refunded one executes nothing', async () => {
  const it = await unserved();
  await refund(it.deps, PAYMENT_STREAM);
  assert.equal(outcomeOf(await execute(it)), 'payment_reused');
  assert.equal(outcomeOf(await execute(it, again())), 'ran');
  assert.deepEqual(await typesIn(it, KEY_STREAM), [
    'IdempotencyKeyClaimed',
    'IdempotencyKeyReleased',
    'IdempotencyKeyClaimed',
  ]);
  assert.equal(it.outbound.sent.length, 1);
});

test('refunding: the key stays with the payment, whose refund may be cancelled', async () => {
  const it = await unserved();
  await begin(it.deps, PAYMENT_STREAM);
  const answer = await refusalOf(it, again());
  const { refused, details } = answer;
  assert.deepEqual([refused, details], ['idempotency_in_progress', { paymentState: 'refunding' }]);
  assert.deepEqual([it.payments.calls.settle, await it.log.readStream(NEW_STREAM)], [1, []]);
});

test('a job that starts while its refund is looked up keeps its key', async () => {
  const it = await unserved();
  const second = world(it.common);
  const calls: ReturnType<typeof execute>[] = [];
  const { readStream } = it.log;
  let isRead = false;
  const log: World['log'] = {
    ...it.log,
    // The job is read as absent; then the call is made, and its charge returned; then the payment is read.
    async readStream(stream, options) {
      const events = await readStream(stream, options);
      if (isRead || !stream.startsWith('job-')) return events;
      isRead = true;
      calls.push(execute(it));
      await Promise.all(calls);
      await refund(it.deps, PAYMENT_STREAM, { includeServed: true });
      return events;
    },
  };
  const answer = await execute({ deps: { ...second.deps, log } }, again());
  assert.deepEqual([outcomeOf(answer), (await Promise.all(calls)).map(outcomeOf)], ['replayed', ['ran']]);
  assert.deepEqual([it.outbound.sent.length, second.outbound.sent.length], [1, 0]);
});
