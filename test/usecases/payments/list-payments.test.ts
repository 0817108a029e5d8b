// The payments that an operator sees: those that bought nothing yet, and unconfirmed ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainEvent } from '#src/domain/events.ts';
import type { OpenState } from '#src/domain/payment/ledger.ts';
import { listPayments } from '#src/usecases/payments/list-payments.ts';
import { given, shared, world } from '#test/support/fakes-world.ts';
import {
  at,
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  settlementRetried,
  settlementUnknown,
  T0,
} from '#test/support/given-events.ts';

const ALL: readonly OpenState[] = ['unserved', 'refundable', 'unknown'];
const JOB_STREAM = `job-${JOB_ID}`;
const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
const TRANSACTION = paymentSettled().data.transaction;
const FACTS = { scheme, network, asset, amount, payTo, payer, transaction: TRANSACTION, payloadHash };
const paidJob = (changes = {}) =>
  jobStarted({ mode: 'x402', payment: FACTS, paymentStream: PAYMENT_STREAM, startedAt: at(10), ...changes });
const settled = [paymentReserved(), paymentSettled()];

/** What is listed `afterMs` after the samples' beginning, of a log that holds these streams. */
async function listed(streams: Record<string, readonly DomainEvent[]>, afterMs: number, states = ALL) {
  const it = shared();
  for (const [stream, events] of Object.entries(streams))
    if (events.length > 0) await given(it, stream, ...events);
  return listPayments({ log: it.log, clock: { now: () => T0 + afterMs } }, new Set(states));
}
const stateOf = async (
  payment: readonly DomainEvent[],
  job: readonly DomainEvent[] = [],
  afterMs = 3_600_000,
) => {
  const rows = await listed({ [PAYMENT_STREAM]: payment, [JOB_STREAM]: job }, afterMs);
  return rows.map(({ state, since, transaction }) => [state, since, transaction]);
};

test('a settled payment whose job never started is unserved, from the moment it settled', async () => {
  assert.deepEqual(await listed({ [PAYMENT_STREAM]: settled }, 5), [
    {
      id: PAYMENT_STREAM,
      state: 'unserved',
      payer,
      network,
      asset,
      amount: '3000',
      transaction: TRANSACTION,
      jobId: JOB_ID,
      since: at(5),
    },
  ]);
});

test('a payment whose job runs is not listed', async () => {
  assert.deepEqual(await stateOf(settled, [paidJob()]), []);
});

test('a completed job has bought what was paid for: succeeded, or failed at its target', async () => {
  assert.deepEqual(await stateOf(settled, [paidJob(), jobCompleted()]), []);
  for (const errorCategory of ['timeout', 'target_refused', 'target_server_error'] as const) {
    const failed = jobCompleted({ status: 'failed', errorCategory });
    assert.deepEqual(await stateOf(settled, [paidJob(), failed]), [], errorCategory);
  }
});

test('a job closed as interrupted_unknown or not_executed makes its payment refundable', async () => {
  for (const errorCategory of ['interrupted_unknown', 'not_executed'] as const) {
    const closed = jobCompleted({ status: 'failed', errorCategory, completedAt: at(90) });
    assert.deepEqual(await stateOf(settled, [paidJob(), closed]), [['refundable', at(90), TRANSACTION]]);
  }
});

test('a settlement of unknown fate is unknown at once', async () => {
  assert.deepEqual(await stateOf([paymentReserved(), settlementUnknown()], [], 6), [
    ['unknown', at(5), null],
  ]);
});

test('reserved or retried is unknown only when older than 45 s: before, it may be under way', async () => {
  const reserved = [paymentReserved()];
  assert.deepEqual(await stateOf(reserved, [], 45_000), []);
  assert.deepEqual(await stateOf(reserved, [], 45_001), [['unknown', at(0), null]]);
  const retried = [paymentReserved(), settlementUnknown(), settlementRetried()];
  assert.deepEqual(await stateOf(retried, [], 45_006), []);
  assert.deepEqual(await stateOf(retried, [], 45_007), [['unknown', at(6), null]]);
});

test('a payment that ended without money moving is not listed', async () => {
  assert.deepEqual(await stateOf([paymentReserved(), paymentRejected()]), []);
  assert.deepEqual(await stateOf([paymentReserved(), paymentReleased()]), []);
});

test('money that came to light after the payment had ended is unserved', async () => {
  const late = paymentSettled({ evidence: 'chain', settledAt: at(77) });
  const ended = [paymentReserved(), settlementUnknown(), paymentRejected()];
  assert.deepEqual(await stateOf([...ended, late]), [['unserved', at(77), TRANSACTION]]);
  assert.deepEqual(await stateOf([...ended, late], [paidJob(), jobCompleted()]), []);
});

test('a settlement recorded twice, the second time after its job, opens nothing', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, ...settled);
  await given(it, JOB_STREAM, paidJob(), jobCompleted());
  await given(it, PAYMENT_STREAM, paymentSettled());
  assert.deepEqual(await listPayments(it.deps, new Set(ALL)), []);
});

test('reserved again for another job, it is that job’s payment', async () => {
  const again = [
    paymentReserved(),
    paymentReleased(),
    paymentReserved({ jobId: OTHER_JOB_ID }),
    paymentSettled({ jobId: OTHER_JOB_ID }),
  ];
  const [row] = await listed({ [PAYMENT_STREAM]: again }, 100);
  assert.deepEqual([row?.state, row?.jobId], ['unserved', OTHER_JOB_ID]);
  const started = paidJob({ jobId: OTHER_JOB_ID });
  assert.deepEqual(await listed({ [PAYMENT_STREAM]: again, [`job-${OTHER_JOB_ID}`]: [started] }, 100), []);
});

test('settled with an unknown transaction: listed without one', async () => {
  const nameless = paymentSettled({ transaction: null });
  assert.deepEqual(await stateOf([paymentReserved(), settlementUnknown(), nameless]), [
    ['unserved', at(5), null],
  ]);
});

test('only the states asked for, the longest open first', async () => {
  const job = (n: number) => `job_${String(n).padStart(26, '0')}`;
  const stream = (n: number) => `payment-${hex(String(n))}`;
  const streams = {
    [stream(1)]: [
      paymentReserved({ jobId: job(1) }),
      settlementUnknown({ jobId: job(1), unknownAt: at(30) }),
    ],
    [stream(2)]: [paymentReserved({ jobId: job(2) }), paymentSettled({ jobId: job(2), settledAt: at(20) })],
    [stream(3)]: [
      paymentReserved({ jobId: job(3) }),
      settlementUnknown({ jobId: job(3), unknownAt: at(10) }),
    ],
  };
  const ids = async (states?: readonly OpenState[]) =>
    (await listed(streams, 60, states)).map(({ id }) => id);
  assert.deepEqual(await ids(), [stream(3), stream(2), stream(1)]);
  assert.deepEqual(await ids(['unknown']), [stream(3), stream(1)]);
  assert.deepEqual(await ids(['unserved', 'refundable']), [stream(2)]);
});

test('a log of several pages is read to its end, and unpaid jobs in it change nothing', async () => {
  const it = world();
  for (let n = 0; n < 700; n++) {
    const jobId = `job_${String(n).padStart(26, '0')}`;
    await given(it, `job-${jobId}`, jobStarted({ jobId }), jobCompleted({ jobId }));
  }
  await given(it, PAYMENT_STREAM, ...settled);
  const rows = await listPayments(it.deps, new Set(ALL));
  assert.deepEqual(
    rows.map(({ id }) => id),
    [PAYMENT_STREAM],
  );
});

test('an event that cannot be read is never passed over', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved());
  const data = { ...paymentSettled().data, v: 9 };
  await it.log.append(PAYMENT_STREAM, 0n, [
    { id: '00000000-0000-4000-8000-000000000001', type: 'PaymentSettled', data, metadata: {} },
  ]);
  await assert.rejects(
    listPayments(it.deps, new Set(ALL)),
    /an event of payment-[0-9a-f]{64} cannot be read: PaymentSettled 1$/,
  );
});
