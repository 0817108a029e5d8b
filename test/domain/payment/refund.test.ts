// Which payments can be refunded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentEvent } from '#src/domain/events.ts';
import { type Refund, refundPayment } from '#src/domain/payment/refund.ts';
import { givenPayment } from '#test/support/given.ts';
import {
  at,
  paymentRefunded,
  paymentRejected,
  paymentReserved,
  paymentSettled,
  settlementUnknown,
} from '#test/support/given-events.ts';

const REFUND: Refund = {
  transaction: paymentRefunded().data.transaction,
  evidence: 'chain',
  at: at(100),
};
const decide = (
  job: Parameters<typeof refundPayment>[1],
  events: readonly PaymentEvent[],
  changes: Partial<Refund> = {},
) => refundPayment(givenPayment(...events).state, job, { ...REFUND, ...changes });
const settled = [paymentReserved(), paymentSettled()];

test('a settled payment is refunded in full, whether its job never started or has ended', () => {
  for (const job of ['absent', 'completed'] as const)
    assert.deepEqual(decide(job, settled), paymentRefunded());
});

test('a refund that only the operator states is recorded as such', () => {
  assert.deepEqual(
    decide('absent', settled, { evidence: 'operator' }),
    paymentRefunded({ evidence: 'operator' }),
  );
});

test('not_charged: nothing that is not settled is refunded', () => {
  const reserved = paymentReserved();
  for (const events of [[], [reserved], [reserved, settlementUnknown()], [reserved, paymentRejected()]])
    assert.deepEqual(decide('absent', events), { refused: 'not_charged' });
});

test('already_refunded: a payment is refunded once', () => {
  assert.deepEqual(decide('completed', [...settled, paymentRefunded()]), { refused: 'already_refunded' });
});

test('job_running: a call that may still succeed is not refunded', () => {
  assert.deepEqual(decide('running', settled), { refused: 'job_running' });
});
