// Payments that could not be confirmed yet: counted as calls in flight of their callers, until their streams say more.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unconfirmedPayments } from '#src/usecases/execution/process-limits.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, paidWith } from '#test/support/given/given-call.ts';
import {
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  settlementUnknown,
} from '#test/support/given/given-events.ts';
import { isUnconfirmed, outcomeOf, refusalOf, rejected, unknown } from '#test/support/given/given-payment.ts';
import { gate } from '#test/support/log/fakes-log.ts';
import { quiet, succeeding } from '#test/support/world/fakes.ts';
import { given, type World, world } from '#test/support/world/fakes-world.ts';

// ── the registry ────────────────────────────────────────────────────────────────────────────────────────

test('an account’s open payments, oldest first, without the call’s own; one that is dropped is gone', () => {
  const open = unconfirmedPayments();
  for (const stream of ['s1', 's2', 's3', 's1']) open.add('a', stream);
  open.add('b', 's4');
  open.add('b', 's1');
  assert.deepEqual(open.waiting('a', 's2'), ['s1', 's3']);
  open.drop('s1');
  open.drop('never met');
  assert.deepEqual(open.waiting('a', 'none'), ['s2', 's3']);
  assert.deepEqual(open.waiting('b', 'none'), ['s4']);
  assert.deepEqual(open.waiting('c', 'none'), []);
});

test('memory is bounded: beyond its limit the oldest are forgotten', () => {
  const open = unconfirmedPayments(2);
  for (const stream of ['s1', 's2', 's3']) open.add('a', stream);
  assert.deepEqual(open.waiting('a', 'none'), ['s2', 's3']);
});

// ── the execution ───────────────────────────────────────────────────────────────────────────────────────

const call = (i: number, payer?: string) => {
  const payment = otherPayment(String(i));
  return paidWith(payer === undefined ? payment : { ...payment, payer }, { key: null });
};
const streamOf = (i: number) => `payment-${otherPayment(String(i)).hash}`;

async function unconfirmed(it: World, ...numbers: readonly number[]) {
  for (const i of numbers) {
    it.payments.scriptSettle(unknown);
    await assert.rejects(execute(it, call(i)), isUnconfirmed);
  }
}

test('too_many_in_flight: 4 open payments are 4 calls in flight; a fifth is not verified, another payer is not touched', async () => {
  const it = world();
  await unconfirmed(it, 1, 2, 3, 4);
  const { verify } = it.payments.calls;
  const fifth = await refusalOf(it, call(5));
  assert.deepEqual([fifth.refused, fifth.retryAfterSeconds], ['too_many_in_flight', 5]);
  assert.deepEqual([it.payments.calls.verify, it.slots.inFlight()], [verify, 0]);
  assert.equal(outcomeOf(await execute(it, call(6, '0x3333'))), 'ran');
});

test('an open payment whose authorization is surely over counts no more: the caller that gave it up is not shut out', async () => {
  const it = world();
  await unconfirmed(it, 1, 2, 3, 4);
  it.clock.advance(180_000);
  assert.equal(
    outcomeOf(await execute(it, call(5))),
    'too_many_in_flight',
    '60 s after its end it may still count',
  );
  it.clock.advance(1000);
  assert.equal(outcomeOf(await execute(it, call(5))), 'ran');
});

test('open payments and running calls share one limit', async () => {
  const it = world();
  await unconfirmed(it, 1, 2, 3);
  const { frozen, open } = gate();
  it.outbound.script(() => frozen(async () => succeeding()));
  const running = execute(it, call(4));
  await quiet();
  assert.equal(it.outbound.sent.length, 1);
  assert.equal(outcomeOf(await execute(it, call(5))), 'too_many_in_flight');
  open();
  assert.equal(outcomeOf(await running), 'ran');
  assert.equal(outcomeOf(await execute(it, call(5))), 'ran');
});

test('a caller that repeats an open payment is not refused because of the others, and makes room when it is confirmed', async () => {
  const it = world();
  await unconfirmed(it, 1, 2, 3, 4);
  assert.equal(outcomeOf(await execute(it, call(5))), 'too_many_in_flight');
  assert.equal(outcomeOf(await execute(it, call(2))), 'ran');
  assert.equal(outcomeOf(await execute(it, call(5))), 'ran');
  const elsewhere = world(it.common);
  for (const stream of [streamOf(1), streamOf(3), streamOf(4), 'payment-x', 'payment-y']) {
    if (/[xy]$/.test(stream)) await given(it, stream, paymentReserved(), settlementUnknown());
    elsewhere.unconfirmed.add(otherPayment().payer, stream);
  }
  assert.equal(
    outcomeOf(await execute(elsewhere, call(1))),
    'ran',
    'more open ones than slots lock no caller in',
  );
});

test('a repeat that ends without its answer stays open', async () => {
  const it = world();
  await unconfirmed(it, 1, 2, 3, 4);
  await unconfirmed(it, 1);
  assert.equal(outcomeOf(await execute(it, call(5))), 'too_many_in_flight');
  it.payments.scriptSettle(() => {
    throw new Error('a bug');
  });
  await assert.rejects(execute(it, call(1)), /a bug/);
  assert.equal(outcomeOf(await execute(it, call(5))), 'too_many_in_flight');
});

for (const [why, end] of [
  ['settled', paymentSettled()],
  ['rejected', paymentRejected()],
  ['released', paymentReleased()],
] as const) {
  test(`${why} elsewhere meanwhile: its stream is read again before anyone is refused, and it counts no more`, async () => {
    const it = world();
    await unconfirmed(it, 1, 2, 3, 4);
    await given(it, streamOf(3), end);
    assert.equal(outcomeOf(await execute(it, call(5))), 'ran');
  });
}

test('found unused after its expiry, or rejected by the first call: open no more', async () => {
  const it = world();
  await unconfirmed(it, 1, 2, 3, 4);
  it.payments.scriptLookUp({ outcome: 'cancelled' });
  assert.equal(outcomeOf(await execute(it, call(1))), 'payment_required');
  assert.deepEqual(it.unconfirmed.waiting(otherPayment().payer, 'none'), [2, 3, 4].map(streamOf));
  it.payments.scriptSettle(rejected);
  assert.equal(outcomeOf(await execute(it, call(5))), 'payment_required');
  assert.equal(it.unconfirmed.waiting(otherPayment().payer, 'none').length, 3);
});

test('an open payment of another process counts here from the first time it is met', async () => {
  const it = world();
  await unconfirmed(it, 1);
  const other = world(it.common);
  other.payments.scriptSettle(() => {
    throw new Error('a bug');
  });
  await assert.rejects(execute(other, call(1)), /a bug/);
  assert.deepEqual(other.unconfirmed.waiting(otherPayment().payer, 'none'), [streamOf(1)]);
});
