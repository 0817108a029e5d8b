// Which payments can be refunded, and which transfers refund them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentEvent } from '#src/domain/events.ts';
import { type FoundTransfer, judgeTransfer, type Refund, refundPayment } from '#src/domain/payment/refund.ts';
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
    assert.deepEqual(decide(job, settled), paymentRefunded({ sender: null }));
});

test('a refund that only the operator states is recorded as such', () => {
  assert.deepEqual(
    decide('absent', settled, { evidence: 'operator' }),
    paymentRefunded({ evidence: 'operator', sender: null }),
  );
});

test('not_charged: nothing that is not settled is refunded', () => {
  const reserved = paymentReserved();
  for (const events of [[], [reserved], [reserved, settlementUnknown()], [reserved, paymentRejected()]])
    assert.deepEqual(decide('absent', events), { refused: 'not_charged' });
});

test('already_refunded: a payment is refunded once', () => {
  assert.deepEqual(decide('completed', [...settled, paymentRefunded({ sender: null })]), {
    refused: 'already_refunded',
  });
});

test('job_running: a call that may still succeed is not refunded', () => {
  assert.deepEqual(decide('running', settled), { refused: 'job_running' });
});

test('charge_transaction: the charge is not its own refund', () => {
  const transaction = paymentSettled().data.transaction ?? '';
  assert.deepEqual(decide('completed', settled, { transaction }), { refused: 'charge_transaction' });
});

test('a transfer refunds if it moved at least the amount, not before the payment was reserved', () => {
  const { reservedAt } = paymentReserved().data;
  const reserved = Math.floor(Date.parse(reservedAt) / 1000);
  const cases: readonly [FoundTransfer, ReturnType<typeof judgeTransfer>][] = [
    [{ outcome: 'found', amount: 6000n, atSeconds: reserved }, null],
    [{ outcome: 'found', amount: 6001n, atSeconds: reserved + 1 }, null],
    [{ outcome: 'found', amount: 5999n, atSeconds: reserved }, 'transfer_too_small'],
    [{ outcome: 'found', amount: 6000n, atSeconds: reserved - 1 }, 'transfer_before_charge'],
    [{ outcome: 'missing' }, 'transfer_missing'],
    [{ outcome: 'failed' }, 'transfer_failed'],
    [{ outcome: 'unavailable' }, 'chain_unavailable'],
  ];
  for (const [found, refusal] of cases)
    assert.equal(judgeTransfer(found, { amount: '6000', reservedAt }), refusal);
});
