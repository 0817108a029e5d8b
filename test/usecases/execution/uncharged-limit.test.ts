// A payment that is taken and not charged has written to the event log for free: of each client address, so many a day.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { type CallChanges, execute, paidWith } from '#test/support/given/given-call.ts';
import { isUnconfirmed, outcomeOf, refusalOf, rejected, unknown } from '#test/support/given/given-payment.ts';
import { letPass } from '#test/support/world/fakes.ts';
import { shared, type World, world } from '#test/support/world/fakes-world.ts';

const PER_DAY = LIMITS.unchargedPerDay.max;

/** A call of a payer of its own. */
const callOf = (n: number, more: CallChanges = {}) =>
  paidWith(otherPayment(String(n), { payer: `0x${n}` }), { key: null, ...more });

async function rejectedCalls(it: World, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    it.payments.scriptSettle(rejected);
    assert.equal(outcomeOf(await execute(it, callOf(n))), 'payment_required');
  }
}

const bytesOf = (events: readonly RecordedEvent[]) =>
  JSON.stringify(events.map(({ type, data }) => [type, data])).length;

test(`rate_limited: the call of an address of which ${PER_DAY} payments were not charged today; another address pays`, async () => {
  const it = world();
  await rejectedCalls(it, PER_DAY);
  const [events, verifies] = [it.log.events.length, it.payments.calls.verify];
  const { refused, retryAfterSeconds, message } = await refusalOf(it, callOf(PER_DAY));
  assert.deepEqual([refused, retryAfterSeconds], ['rate_limited', 86_400]);
  assert.match(message, /not charged/);
  assert.deepEqual([it.log.events.length, it.payments.calls.verify], [events, verifies], 'it costs nothing');
  assert.equal(outcomeOf(await execute(it, callOf(PER_DAY + 1, { client: '203.0.113.9' }))), 'ran');
});

test('a payment that was taken before is served whatever was not charged since', async () => {
  const it = world();
  it.payments.scriptSettle(unknown);
  await assert.rejects(letPass(it.clock, execute(it, callOf(PER_DAY))), isUnconfirmed);
  await rejectedCalls(it, PER_DAY - 1);
  assert.equal(outcomeOf(await letPass(it.clock, execute(it, callOf(PER_DAY + 1)))), 'rate_limited');
  it.clock.advance(45_000);
  assert.equal(outcomeOf(await letPass(it.clock, execute(it, callOf(PER_DAY)))), 'ran');
  assert.equal(outcomeOf(await execute(it, callOf(PER_DAY + 1))), 'ran', 'it is charged: one less');
});

test('payments of unknown fate count until it is known, by whichever process', async () => {
  const common = shared();
  const [it, other] = [world(common), world(common)];
  for (let n = 0; n < PER_DAY; n++) {
    it.payments.scriptSettle(unknown);
    await assert.rejects(letPass(it.clock, execute(it, callOf(n))), isUnconfirmed);
  }
  const { refused, retryAfterSeconds } = await refusalOf(it, callOf(PER_DAY));
  assert.deepEqual([refused, retryAfterSeconds], ['rate_limited', 5]);
  assert.equal(outcomeOf(await letPass(other.clock, execute(other, callOf(0)))), 'ran');
  assert.equal(outcomeOf(await execute(it, callOf(PER_DAY))), 'ran');
});

test('what a call that is not charged writes has at most 4 kB, its key and its payment at their longest', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  const key = 'k'.repeat(LIMITS.idempotencyKeyLength.max);
  assert.equal(outcomeOf(await execute(it, callOf(1, { key }))), 'payment_required');
  assert.deepEqual(
    it.log.events.map(({ type }) => type),
    ['PaymentReserved', 'IdempotencyKeyClaimed', 'PaymentRejected'],
  );
  assert.ok(bytesOf(it.log.events) <= 4000, String(bytesOf(it.log.events)));
});
