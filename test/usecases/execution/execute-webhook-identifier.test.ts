// The identifier of a payment (extension payment-identifier): the idempotency key of a request that has none.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { otherPayment, presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { type CallChanges, execute, KEY_STREAM, lookupOf, paidWith } from '#test/support/given/given-call.ts';
import { outcomeOf } from '#test/support/given/given-payment.ts';
import { typesIn, world } from '#test/support/world/fakes-world.ts';

const ID = 'pay_0123456789abcdef';
/** Payments of one payer, `digit` by `digit`. */
const payment = (digit: string, identifier: string | null = ID) =>
  otherPayment(digit, { identifier, payer: presentedPayment().payer });
const call = (digit: string, identifier: string | null = ID, more: CallChanges = {}): CallChanges => ({
  key: null,
  ...paidWith(payment(digit, identifier)),
  ...more,
});
const jobOf = (answer: Awaited<ReturnType<typeof execute>>) => {
  assert.ok(answer.kind !== 'refused', outcomeOf(answer));
  return answer.execution.job.id;
};

test('same id, same request: the recorded answer, whatever payment is presented; nothing is settled again', async () => {
  const it = world();
  const first = await execute(it, call('1'));
  assert.equal(first.kind, 'ran');
  const again = await execute(it, call('2'));
  assert.deepEqual([again.kind, jobOf(again)], ['replayed', jobOf(first)]);
  assert.deepEqual([it.outbound.sent.length, it.payments.calls.settle], [1, 1]);
});

test('idempotency_conflict: same id, another request', async () => {
  const it = world();
  await execute(it, call('1'));
  assert.equal(outcomeOf(await execute(it, call('2', ID, { request: { body: 2 } }))), 'idempotency_conflict');
  assert.equal(outcomeOf(await execute(it, call('3', `${ID}0`, { request: { body: 2 } }))), 'ran');
});

test('a key of the request rules: the id is ignored', async () => {
  const keyed = lookupOf({ ...call('1'), key: 'own' });
  assert.deepEqual(keyed.claimStream, lookupOf({ ...call('1', null), key: 'own' }).claimStream);
  const it = world();
  await execute(it, call('1', ID, { key: 'own' }));
  assert.equal(outcomeOf(await execute(it, call('2', ID, { key: 'other' }))), 'ran');
  assert.equal(outcomeOf(await execute(it, call('3', ID))), 'ran', 'the id was never claimed');
  assert.equal(outcomeOf(await execute(it, call('4', `${ID}0`, { key: 'own' }))), 'replayed');
});

test('idempotency_conflict: an id that another request of the payer used as its key', async () => {
  const it = world();
  await execute(it, call('1', null, { key: ID }));
  assert.equal(outcomeOf(await execute(it, call('2', ID))), 'idempotency_conflict');
});

test('a copy of the payment replays with another id, without one, and as version 1', async () => {
  const it = world();
  const id = jobOf(await execute(it, call('1')));
  for (const identifier of [ID, `${ID}0`, null]) {
    for (const x402Version of [1, 2] as const) {
      const copy = { ...payment('1', identifier), x402Version };
      const again = await execute(it, { key: null, ...paidWith(copy) });
      assert.deepEqual([again.kind, jobOf(again)], ['replayed', id]);
    }
  }
  assert.equal(it.payments.calls.settle, 1);
});

test('a decision remains the key of its call: one decision approves one execution, whatever ids are sent', async () => {
  const it = world();
  const guided = { route: 'execute/guided-webhook', decisionId: 'dec_1' } as const;
  const id = jobOf(await execute(it, call('1', ID, guided)));
  const again = await execute(it, call('2', `${ID}0`, guided));
  assert.deepEqual([again.kind, jobOf(again)], ['replayed', id]);
});

test('the id is claimed like a key, and is stored nowhere in the clear', async () => {
  const it = world();
  await execute(it, call('1'));
  const stream = lookupOf(call('1')).claimStream ?? '';
  assert.notEqual(stream, KEY_STREAM);
  assert.deepEqual(await typesIn(it, stream), ['IdempotencyKeyClaimed']);
  const stored = it.log.events.map(({ stream: name, data }) => JSON.stringify([name, data])).join('\n');
  assert.equal(stored.includes(ID), false);
});
