// Sums by day and month: of the events' own times, and what was open at the end of each period.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sumPayments } from '#src/usecases/payments/sum-payments.ts';
import {
  jobCompleted,
  jobStarted,
  paymentRefunded,
  paymentReserved,
  paymentSettled,
  refundBegun,
} from '#test/support/given/given-events.ts';
import { given, type World, world } from '#test/support/world/fakes-world.ts';

const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
const stream = (n: number) => `payment-${n.toString(16).padStart(64, '0')}`;
const jobOf = (n: number) => `job_${String(n).padStart(26, '0')}`;

async function charge(it: World, n: number, settledAt: string, changes = {}) {
  const jobId = jobOf(n);
  const reserved = paymentReserved({ jobId, reservedAt: settledAt, ...changes });
  await given(it, stream(n), reserved, paymentSettled({ jobId, settledAt }));
}
async function serve(it: World, n: number, completedAt: string) {
  const jobId = jobOf(n);
  const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction: null };
  const started = jobStarted({
    jobId,
    mode: 'x402',
    payment,
    paymentStream: stream(n),
    startedAt: completedAt,
  });
  await given(it, `job-${jobId}`, started, jobCompleted({ jobId, completedAt }));
}
async function refund(it: World, n: number, refundedAt: string) {
  const jobId = jobOf(n);
  await given(
    it,
    stream(n),
    refundBegun({ jobId, begunAt: refundedAt }),
    paymentRefunded({ jobId, refundedAt }),
  );
}

/** Charged: two on 31 January, one on 1 February, one on 3 March. One each is served and refunded late. */
async function books() {
  const it = world();
  await charge(it, 1, '2026-01-31T12:00:00.000Z');
  await charge(it, 2, '2026-01-31T23:59:59.999Z');
  await charge(it, 3, '2026-02-01T00:00:00.000Z');
  await serve(it, 1, '2026-02-01T08:00:00.000Z');
  await refund(it, 2, '2026-02-02T08:00:00.000Z');
  await charge(it, 4, '2026-03-03T00:00:00.000Z');
  await refund(it, 1, '2026-03-03T01:00:00.000Z');
  return it;
}
const sums = async (
  it: World,
  by: 'day' | 'month',
  since: string | null = null,
  until: string | null = null,
) =>
  (await sumPayments(it.log, by, { since, until })).map((row) => [
    row.period,
    ...[row.charged, row.served, row.refunded, row.open].map(Number),
  ]);

test('by day and by month, with what was open at the end', async () => {
  const it = await books();
  assert.deepEqual(await sums(it, 'day'), [
    ['2026-01-31', 6000, 0, 0, 6000],
    ['2026-02-01', 3000, 3000, 0, 6000],
    ['2026-02-02', 0, 0, 3000, 3000],
    ['2026-03-03', 3000, -3000, 3000, 6000],
  ]);
  assert.deepEqual(await sums(it, 'month'), [
    ['2026-01', 6000, 0, 0, 6000],
    ['2026-02', 3000, 3000, 3000, 3000],
    ['2026-03', 3000, -3000, 3000, 6000],
  ]);
});

test('within a time: what was open includes everything before it', async () => {
  const it = await books();
  const february = await sums(it, 'day', '2026-02-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z');
  assert.deepEqual(
    february.map(([period]) => period),
    ['2026-02-01', '2026-02-02'],
  );
  assert.deepEqual(february[0], ['2026-02-01', 3000, 3000, 0, 6000]);
  const months = await sums(it, 'month', '2026-02-15T00:00:00.000Z', '2026-03-01T00:00:00.000Z');
  assert.deepEqual(
    months.map(([period]) => period),
    ['2026-02'],
  );
});

test('each asset has its own sums, and a log without charges has none', async () => {
  const it = await books();
  await charge(it, 5, '2026-03-03T02:00:00.000Z', { asset: '0x1', amount: '7' });
  const rows = await sumPayments(it.log, 'month', { since: '2026-03-01T00:00:00.000Z', until: null });
  assert.deepEqual(
    rows.map((row) => [row.asset, row.charged, row.open]),
    [
      [asset, '3000', '6000'],
      ['0x1', '7', '7'],
    ],
  );
  assert.deepEqual(await sums(world(), 'day'), []);
});
