// The payments that an operator sees: those that bought nothing yet, and unconfirmed ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainEvent } from '#src/domain/events.ts';
import { isWithinPeriod, listAllPayments, type PaymentRow } from '#src/usecases/payments/list-payments.ts';
import { listOpenPayments } from '#test/support/given/books.ts';
import {
  at,
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentRefunded,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  refundCancelled,
  settlementRetried,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';
import { given, shared, type World, world } from '#test/support/world/fakes-world.ts';

const JOB_STREAM = `job-${JOB_ID}`;
const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
const TRANSACTION = paymentSettled().data.transaction;
const FACTS = { scheme, network, asset, amount, payTo, payer, transaction: TRANSACTION, payloadHash };
const paidJob = (changes = {}) =>
  jobStarted({ mode: 'x402', payment: FACTS, paymentStream: PAYMENT_STREAM, startedAt: at(10), ...changes });
const settled = [paymentReserved(), paymentSettled()];

/** What is listed `afterMs` after the samples' beginning, of a log that holds these streams. */
async function listed(streams: Record<string, readonly DomainEvent[]>, afterMs: number) {
  const it = shared();
  for (const [stream, events] of Object.entries(streams))
    if (events.length > 0) await given(it, stream, ...events);
  return listOpenPayments({ log: it.log, clock: { now: () => T0 + afterMs } });
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
      nonce: paymentReserved().data.nonce,
      validBefore: paymentReserved().data.validBefore,
      transaction: TRANSACTION,
      statedTransaction: null,
      refundTransaction: null,
      jobId: JOB_ID,
      since: at(5),
      reservedAt: at(0),
      settledAt: at(5),
      refundBegunAt: null,
      refundedAt: null,
    },
  ]);
});

test('a refund that has begun is listed until it is recorded, also of a call that was made', async () => {
  const begun = [...settled, refundBegun()];
  assert.deepEqual(await stateOf(begun), [['refunding', at(80), TRANSACTION]]);
  const served = [...settled, refundBegun({ served: true })];
  assert.equal((await stateOf(served, [paidJob(), jobCompleted()]))[0]?.[0], 'refunding');
  assert.deepEqual(await stateOf([...begun, refundCancelled()]), [['unserved', at(90), TRANSACTION]]);
  assert.deepEqual(await stateOf([...begun, paymentRefunded()]), []);
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

test('money that came to light after the payment had ended is unserved', async () => {
  const late = paymentSettled({ evidence: 'chain', settledAt: at(77) });
  const ended = [paymentReserved(), settlementUnknown(), paymentRejected()];
  assert.deepEqual(await stateOf([...ended, late]), [['unserved', at(77), TRANSACTION]]);
  assert.deepEqual(await stateOf([...ended, late], [paidJob(), jobCompleted()]), []);
});

test('settled with an unknown transaction: listed without one', async () => {
  const nameless = paymentSettled({ transaction: null });
  assert.deepEqual(await stateOf([paymentReserved(), settlementUnknown(), nameless]), [
    ['unserved', at(5), null],
  ]);
});

test('the longest open first', async () => {
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
  const rows = await listed(streams, 60);
  assert.deepEqual(
    rows.map(({ id }) => id),
    [stream(3), stream(2), stream(1)],
  );
});

test('a log of several pages is read to its end, and unpaid jobs in it change nothing', async () => {
  const it = world();
  for (let n = 0; n < 700; n++) {
    const jobId = `job_${String(n).padStart(26, '0')}`;
    await given(it, `job-${jobId}`, jobStarted({ jobId }), jobCompleted({ jobId }));
  }
  await given(it, PAYMENT_STREAM, ...settled);
  const rows = await listOpenPayments(it.deps);
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
    listOpenPayments(it.deps),
    /an event of payment was written by a newer release: PaymentSettled version 9/,
  );
});

// ── all payments ────────────────────────────────────────────────────────────────────────────────────────

const stream = (n: number) => `payment-${n.toString(16).padStart(64, '0')}`;
const jobOf = (n: number) => `job_${String(n).padStart(26, '0')}`;

async function all(it: World): Promise<PaymentRow[]> {
  const rows: PaymentRow[] = [];
  const clock = { now: () => T0 + 3_600_000 };
  for await (const row of listAllPayments({ log: it.log, clock })) rows.push(row);
  return rows;
}

test('all: every payment once, in the order of reservation, with what became of it', async () => {
  const it = world();
  const n = (jobId: string) => ({ jobId });
  const [executed, failed] = [
    (jobId: string) => [paidJob(n(jobId)), jobCompleted(n(jobId))],
    (jobId: string) => [
      paidJob(n(jobId)),
      jobCompleted({ jobId, status: 'failed', errorCategory: 'not_executed' }),
    ],
  ];
  const charged = (jobId: string) => [paymentReserved(n(jobId)), paymentSettled(n(jobId))];
  const stories: readonly [
    PaymentRow['state'],
    (jobId: string) => readonly DomainEvent[],
    typeof executed?,
  ][] = [
    ['unserved', charged],
    ['served', charged, executed],
    ['refundable', charged, failed],
    ['running', charged, (jobId) => [paidJob(n(jobId))]],
    ['rejected', (jobId) => [paymentReserved(n(jobId)), paymentRejected(n(jobId))]],
    ['released', (jobId) => [paymentReserved(n(jobId)), paymentReleased(n(jobId))]],
    ['unknown', (jobId) => [paymentReserved(n(jobId)), settlementUnknown(n(jobId))]],
    ['refunding', (jobId) => [...charged(jobId), refundBegun(n(jobId))]],
    ['refunded', (jobId) => [...charged(jobId), refundBegun(n(jobId)), paymentRefunded(n(jobId))], failed],
  ];
  for (const [i, [, payment]] of stories.entries()) await given(it, stream(i), ...payment(jobOf(i)));
  for (const [i, [, , job]] of stories.entries())
    if (job !== undefined) await given(it, `job-${jobOf(i)}`, ...job(jobOf(i)));
  const rows = await all(it);
  assert.deepEqual(
    rows.map(({ id, state }) => [id, state]),
    stories.map(([state], i) => [stream(i), state]),
  );
  const refunded = rows.at(-1);
  assert.deepEqual(
    [refunded?.refundTransaction, refunded?.refundedAt, refunded?.settledAt],
    [paymentRefunded().data.transaction, at(100), at(5)],
  );
  // The open ones are the same rows.
  const open = new Map(
    (await listOpenPayments({ log: it.log, clock: { now: () => T0 + 3_600_000 } })).map((row) => [
      row.id,
      row,
    ]),
  );
  for (const row of rows) if (open.has(row.id)) assert.deepEqual(open.get(row.id), row);
  assert.equal(open.size, 4);
});

test('all: a payment that was reserved again is one row; a log of several pages is read to its end', async () => {
  const it = world();
  for (let n = 0; n < 600; n++) await given(it, stream(n), paymentReserved({ jobId: jobOf(n) }));
  await given(it, stream(0), paymentReleased({ jobId: jobOf(0) }), paymentReserved({ jobId: OTHER_JOB_ID }));
  const rows = await all(it);
  assert.equal(rows.length, 600);
  assert.deepEqual([rows[0]?.id, rows[0]?.jobId], [stream(0), OTHER_JOB_ID]);
});

test('a period is of the time of the charge, or else of the reservation: from its first instant to before its last', async () => {
  const [charged, reserved] = await listed(
    { [PAYMENT_STREAM]: settled, [stream(1)]: [paymentReserved(), settlementUnknown()] },
    60_000,
  ).then((rows) => [
    rows.find(({ state }) => state === 'unserved'),
    rows.find(({ state }) => state === 'unknown'),
  ]);
  assert.ok(charged !== undefined && reserved !== undefined);
  const within = (row: PaymentRow, since: number | null, until: number | null) =>
    isWithinPeriod(row, {
      since: since === null ? null : at(since),
      until: until === null ? null : at(until),
    });
  assert.deepEqual(
    [within(charged, 5, 6), within(charged, 6, null), within(charged, null, 5)],
    [true, false, false],
  );
  assert.deepEqual(
    [within(reserved, 0, 1), within(reserved, 1, null), within(reserved, null, null)],
    [true, false, true],
  );
});
