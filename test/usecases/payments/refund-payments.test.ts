// Refunds on the event log: one transfer for several payments, no transfer twice, and the balance.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentEvent } from '#src/domain/events.ts';
import { balancePayments, listPayments } from '#src/usecases/payments/list-payments.ts';
import { type RefundRequest, refundPayments } from '#src/usecases/payments/refund-payments.ts';
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
const charged = (jobId = JOB_ID, changes = {}): readonly PaymentEvent[] => [
  paymentReserved({ jobId, ...changes }),
  paymentSettled({ jobId }),
];
const enough = async () => ({ outcome: 'found', amount: 6000n, afterCharges: true }) as const;

async function two(changes = {}) {
  const it = world();
  await given(it, PAYMENT_STREAM, ...charged());
  await given(it, OTHER_STREAM, ...charged(OTHER_JOB_ID, changes));
  const refund = (request: Partial<RefundRequest>) =>
    refundPayments(it.deps, { ids: [PAYMENT_STREAM], transaction: TX, findTransfer: enough, ...request });
  return { it, refund };
}
const both = { ids: [PAYMENT_STREAM, OTHER_STREAM] };

test('one transfer refunds several payments of one payer; a repeat records nothing more', async () => {
  const { it, refund } = await two();
  const first = await refund(both);
  assert.equal(first.outcome, 'refunded');
  const again = await refund(both);
  assert.deepEqual(again.outcome === 'refunded' && again.rows.map(({ recorded }) => recorded), [
    false,
    false,
  ]);
  for (const stream of both.ids)
    assert.deepEqual(await typesIn(it, stream), ['PaymentReserved', 'PaymentSettled', 'PaymentRefunded']);
  assert.deepEqual(await listPayments(it, new Set(['unserved', 'refundable', 'unknown'])), []);
});

test('a transfer that is recorded for a payment refunds no other', async () => {
  const { refund } = await two();
  await refund({});
  const other = await refund({ ids: [OTHER_STREAM] });
  assert.deepEqual(other, { outcome: 'refused', reason: 'transfer_used', id: PAYMENT_STREAM });
  const twice = await refund({ transaction: `0x${hex('f')}` });
  assert.deepEqual(twice, { outcome: 'refused', reason: 'already_refunded', id: PAYMENT_STREAM });
});

test('nothing is recorded unless the whole transfer fits', async () => {
  const small = async () => ({ outcome: 'found', amount: 5999n, afterCharges: true }) as const;
  const { it, refund } = await two();
  assert.deepEqual(await refund({ ...both, findTransfer: small }), {
    outcome: 'refused',
    reason: 'transfer_too_small',
    id: null,
  });
  assert.deepEqual(await typesIn(it, PAYMENT_STREAM), ['PaymentReserved', 'PaymentSettled']);
  const stranger = await two({ payer: '0x3333333333333333333333333333333333333333' });
  assert.deepEqual(await stranger.refund(both), {
    outcome: 'refused',
    reason: 'several_payers',
    id: OTHER_STREAM,
  });
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
  await refund({ ids: [OTHER_STREAM] });
  assert.deepEqual(await sums(), ['6000', '3000', '3000', '0', true]);
  await refund({ transaction: `0x${hex('f')}` });
  assert.deepEqual(await sums(), ['6000', '0', '6000', '0', true]);
});
