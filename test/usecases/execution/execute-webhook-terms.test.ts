// One nonce, one authorization; and a price that changes after a payment was accepted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refused } from '#src/domain/refusal.ts';
import { otherPayment, presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, paidWith } from '#test/support/given/given-call.ts';
import { PAYMENT_STREAM } from '#test/support/given/given-events.ts';
import { outcomeOf, paymentTypes, refusalOf } from '#test/support/given/given-payment.ts';
import { shared, world } from '#test/support/world/fakes-world.ts';

const foreign = refused('payment_required', 'Not ours.', { details: { reason: 'recipient_mismatch' } });

test('two authorizations on one nonce at once: one is reserved, settled and served, the other is payment_reused', async () => {
  const common = shared();
  const settled: string[] = [];
  common.payments.scriptSettle((payment) => {
    settled.push(payment.amount);
    return common.payments.move(payment);
  });
  const it = world(common);
  const smaller = paidWith(presentedPayment({ amount: '2999' }));
  const outcomes = (await Promise.all([execute(it), execute(world(common), smaller)])).map(outcomeOf);
  assert.deepEqual(outcomes.toSorted(), ['payment_reused', 'ran']);
  const [reserved] = await it.log.readStream(PAYMENT_STREAM);
  assert.deepEqual(settled, [reserved?.data.amount]);
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled']);
});

test('payment_required: an authorization to somebody else proves no payer to what a key knows; one to us does', async () => {
  const it = world();
  await execute(it);
  for (const request of [{}, { body: 'guess' }]) {
    it.payments.scriptTerms(foreign);
    const answer = await refusalOf(it, paidWith(otherPayment(), { request }));
    assert.deepEqual(answer, foreign);
  }
  assert.equal(it.payments.calls.verify, 1);
  assert.equal(outcomeOf(await execute(it, paidWith(otherPayment()))), 'replayed');
});

test('a copy that was held up until the payment expired gets the replay, not a 402, if the payment was served meanwhile', async () => {
  const common = shared();
  const late = world(common);
  const first = world(common);
  let served: unknown = null;
  const slow = {
    ...late.deps.payments,
    validateNew: () => refused('payment_required', 'The payment has expired.'),
  };
  /** The other process serves the payment between this one's look-up and its judgement. */
  const log = {
    ...late.log,
    async readStream(...given: Parameters<typeof late.log.readStream>) {
      const events = await late.log.readStream(...given);
      served ??= await execute(first).then(outcomeOf);
      return events;
    },
  };
  const copy = world(common, { log, payments: slow });
  assert.equal(outcomeOf(await execute(copy)), 'replayed');
  assert.equal(served, 'ran');
  assert.equal(common.payments.calls.settle, 1);
});
