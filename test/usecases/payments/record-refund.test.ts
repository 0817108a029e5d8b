// Refunds on the event log: no transfer twice, and the balance.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentEvent } from '#src/domain/events.ts';
import { balancePayments } from '#src/usecases/payments/balance-payments.ts';
import { listPayments } from '#src/usecases/payments/list-payments.ts';
import { type RefundRequest, recordRefund } from '#src/usecases/payments/record-refund.ts';
import { given, typesIn, world } from '#test/support/fakes-world.ts';
import {
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentReserved,
  paymentSettled,
} from '#test/support/given-events.ts';

const OTHER_STREAM = `payment-${hex('b')}`;
const TX = `0x${hex('e')}`;
const charged = (jobId = JOB_ID): readonly PaymentEvent[] => [
  paymentReserved({ jobId }),
  paymentSettled({ jobId }),
];
const enough = async () => ({ outcome: 'found', amount: 3000n, atSeconds: 9e9 }) as const;

async function two() {
  const it = world();
  await given(it, PAYMENT_STREAM, ...charged());
  await given(it, OTHER_STREAM, ...charged(OTHER_JOB_ID));
  const refund = (request: Partial<RefundRequest>) =>
    recordRefund(it.deps, { id: PAYMENT_STREAM, transaction: TX, findTransfer: enough, ...request });
  return { it, refund };
}

test('a repeat of a refund records nothing more', async () => {
  const { it, refund } = await two();
  for (const recorded of [true, false]) {
    const payment = paymentReserved({ jobId: JOB_ID }).data;
    assert.deepEqual(await refund({}), { outcome: 'refunded', payment, recorded });
  }
  const types = ['PaymentReserved', 'PaymentSettled', 'PaymentRefunded'];
  assert.deepEqual(await typesIn(it, PAYMENT_STREAM), types);
  const open = await listPayments(it, new Set(['unserved', 'refundable', 'unknown']));
  assert.deepEqual(
    open.map(({ id }) => id),
    [OTHER_STREAM],
  );
});

test('a transfer that is recorded for a payment refunds no other', async () => {
  const { refund } = await two();
  await refund({});
  const other = await refund({ id: OTHER_STREAM });
  assert.deepEqual(other, { outcome: 'refused', reason: 'transfer_used', id: PAYMENT_STREAM });
  const twice = await refund({ transaction: `0x${hex('f')}` });
  assert.deepEqual(twice, { outcome: 'refused', reason: 'already_refunded', id: PAYMENT_STREAM });
});

test('a transfer that is too small is not recorded', async () => {
  const findTransfer = async () => ({ outcome: 'found', amount: 2999n, atSeconds: 9e9 }) as const;
  const { it, refund } = await two();
  const refused = { outcome: 'refused', reason: 'transfer_too_small', id: PAYMENT_STREAM };
  assert.deepEqual(await refund({ findTransfer }), refused);
  assert.deepEqual(await typesIn(it, PAYMENT_STREAM), ['PaymentReserved', 'PaymentSettled']);
});

test('charged = served + refunded + open, also when a served payment is refunded', async () => {
  const { it, refund } = await two();
  const sums = async () => {
    const [row] = await balancePayments(it.log);
    return row && [row.charged, row.served, row.refunded, row.open, row.balanced];
  };
  assert.deepEqual(await sums(), ['6000', '0', '0', '6000', true]);
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
  const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction: null };
  const started = jobStarted({ mode: 'x402', payment, paymentStream: PAYMENT_STREAM });
  await given(it, `job-${JOB_ID}`, started, jobCompleted());
  assert.deepEqual(await sums(), ['6000', '3000', '0', '3000', true]);
  await refund({ id: OTHER_STREAM });
  assert.deepEqual(await sums(), ['6000', '3000', '3000', '0', true]);
  await refund({ transaction: `0x${hex('f')}` });
  assert.deepEqual(await sums(), ['6000', '0', '6000', '0', true]);
});
