// The holder of a payment header that can be rebuilt from the chain must not find out, guess by guess, what it paid for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guessLimit } from '#src/usecases/execution/process-limits.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, paidWith } from '#test/support/given/given-call.ts';
import { isUnconfirmed, outcomeOf, rejected, unknown } from '#test/support/given/given-payment.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import { type World, world } from '#test/support/world/fakes-world.ts';

const HOUR = 3_600_000;

// ── the counter ─────────────────────────────────────────────────────────────────────────────────────────

test('the tenth closes for an hour on the monotonic clock; then it starts again', () => {
  const clock = manualClock();
  const guard = guessLimit(clock);
  const guess = (times: number) => {
    for (let i = 0; i < times; i++) guard.count('s');
  };
  guess(9);
  assert.deepEqual([guard.isClosed('s'), guard.isClosed('never met')], [false, false]);
  guess(1);
  clock.skew(10 * HOUR);
  clock.advance(HOUR - 1);
  assert.equal(guard.isClosed('s'), true);
  guess(5);
  clock.advance(1);
  assert.equal(guard.isClosed('s'), false);
  guess(9);
  assert.equal(guard.isClosed('s'), false);
  guess(1);
  assert.equal(guard.isClosed('s'), true);
});

test('memory is bounded: the payment without a wrong guess for the longest time is forgotten', () => {
  const guard = guessLimit(manualClock(), 2);
  const guess = (stream: string, times: number) => {
    for (let i = 0; i < times; i++) guard.count(stream);
  };
  guess('a', 9);
  guess('b', 9);
  guess('a', 1);
  guess('c', 1);
  assert.equal(guard.isClosed('a'), true);
  guess('b', 1);
  assert.equal(guard.isClosed('b'), false);
});

// ── the execution ───────────────────────────────────────────────────────────────────────────────────────

async function guess(it: World, times: number) {
  for (let i = 0; i < times; i++) {
    assert.equal(outcomeOf(await execute(it, { request: { body: i } })), 'payment_reused');
  }
}

test('payment_reused: after 10 wrong requests a completed job’s payment answers everybody alike for an hour, then the right one again', async () => {
  const it = world();
  await execute(it);
  await guess(it, 9);
  const wrong = await execute(it, { key: 'k2' });
  const right = await execute(it);
  assert.deepEqual(right, wrong);
  assert.equal(outcomeOf(right), 'payment_reused');
  it.clock.advance(HOUR - 1);
  assert.equal(outcomeOf(await execute(it)), 'payment_reused');
  it.clock.advance(1);
  assert.equal(outcomeOf(await execute(it)), 'replayed');
});

test('a payment whose job is not completed is still owed to the caller with the right request, after any number of wrong ones', async () => {
  const it = world();
  it.payments.scriptSettle(unknown);
  await assert.rejects(execute(it), isUnconfirmed);
  await guess(it, 25);
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.equal(outcomeOf(await execute(it)), 'payment_reused', 'completed by now: what was guessed counts');
});

test('what is not bound to a request is no guess: a rejected payment may be tried with any, and a key’s conflict counts nothing', async () => {
  const it = world();
  for (let i = 0; i < 12; i++) {
    it.payments.scriptSettle(rejected);
    assert.equal(outcomeOf(await execute(it, { request: { body: i } })), 'payment_required');
  }
  assert.equal(outcomeOf(await execute(it)), 'ran');
  for (let i = 0; i < 12; i++) {
    const conflicting = paidWith(otherPayment(), { request: { body: i } });
    assert.equal(outcomeOf(await execute(it, conflicting)), 'idempotency_conflict');
  }
  assert.equal(outcomeOf(await execute(it)), 'replayed');
});
