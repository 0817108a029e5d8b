// The completion of refunds on the event log: no transfer covers more than its amount, however often and at the same
// moment it is completed, whatever happens between the claim and the record.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { type Completed, completeRefunds } from '#src/usecases/payments/complete-refund.ts';
import { balancePayments } from '#test/support/given/books.ts';
import {
  hex,
  jobStarted,
  paymentReserved,
  paymentSettled,
  refundBegun,
  T0,
} from '#test/support/given/given-events.ts';
import { complete, REFUND_TX, transactionOf, transferOf } from '#test/support/given/given-refund.ts';
import { afterOthers, dies, gate } from '#test/support/log/fakes-log.ts';
import { given, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

const OTHER_PAYER = `0x${'3'.repeat(40)}`;
const OTHER_TX = `0x${hex('f')}`;
const { network } = paymentReserved().data;
const claimStream = (transaction: string) => `refund-${network}:${transaction}`;
const stream = (n: number) => `payment-${n.toString(16).padStart(64, '0')}`;
const jobOf = (n: number) => `job_${String(n).padStart(26, '0')}`;

/** Charged payments whose refund has begun, numbered from 1 on. */
async function begun(...payers: readonly (string | undefined)[]): Promise<World> {
  const it = world();
  for (const [i, payer] of payers.entries()) await giveBegun(it, i + 1, payer);
  return it;
}
async function giveBegun(it: World, n: number, payer = paymentReserved().data.payer) {
  const jobId = jobOf(n);
  const events = [paymentReserved({ jobId, payer }), paymentSettled({ jobId }), refundBegun({ jobId })];
  await given(it, stream(n), ...events);
}
const essence = (completed: Completed) =>
  completed.outcome !== 'completed'
    ? completed.outcome
    : {
        refunds: completed.refunds.map(({ payment, recorded }) => [payment, recorded]),
        uncovered: completed.uncovered.map(({ id, reason }) => [id, reason]),
      };
/** The transactions recorded for each of the payments. */
const refundsOf = async (it: World, ...payments: readonly number[]) =>
  Promise.all(
    payments.map(async (n) =>
      (await it.log.readStream(stream(n)))
        .filter(({ type }) => type === 'PaymentRefunded')
        .map(({ data }) => data.transaction),
    ),
  );
const recorded = (...refunds: readonly [number, boolean][]) => ({
  refunds: refunds.map(([n, isNew]) => [stream(n), isNew]),
  uncovered: [] as string[][],
});

test('several payers and several payments of one in one transaction: claimed first, then recorded with their sender', async () => {
  const it = await begun(undefined, OTHER_PAYER, undefined);
  const found = transactionOf(transferOf(6000n), transferOf(3000n, { recipient: OTHER_PAYER }));
  assert.deepEqual(essence(await complete(it.deps, found)), recorded([1, true], [3, true], [2, true]));
  assert.deepEqual(await typesIn(it, claimStream(REFUND_TX)), ['RefundClaimed']);
  const types = it.log.events.map(({ type }) => type);
  assert.deepEqual(types.slice(-4), ['RefundClaimed', ...Array(3).fill('PaymentRefunded')]);
  const last = (await it.log.readStream(stream(2))).at(-1)?.data;
  assert.deepEqual(
    [last?.v, last?.sender, last?.transaction, last?.payer, last?.evidence],
    [2, paymentReserved().data.payTo, REFUND_TX, OTHER_PAYER, 'chain'],
  );
  const [books] = await balancePayments(it.log);
  assert.deepEqual([books?.refunded, books?.open, books?.balanced], ['9000', '0', true]);
});

for (const [title, reservedMs, chargedSeconds, refunded] of [
  ['its clock was ahead: the refund is recorded', 3_600_000, -1, true],
  ['its clock was behind: a transfer before the charge is no refund', -3_600_000, 1, false],
] as const)
  test(`the time of the charge is its block's, not that of the process that reserved; ${title}`, async () => {
    const it = world();
    const jobId = jobOf(1);
    const reservedAt = new Date(T0 + reservedMs).toISOString();
    const events = [
      paymentReserved({ jobId, reservedAt }),
      paymentSettled({ jobId }),
      refundBegun({ jobId }),
    ];
    await given(it, stream(1), ...events);
    const found = transactionOf(transferOf(3000n));
    assert.ok(found.outcome === 'found');
    const charge = { ...found, atSeconds: found.atSeconds + chargedSeconds };
    const findTransfers = async (transaction: string) => (transaction === REFUND_TX ? found : charge);
    const completed = await completeRefunds(it.deps, {
      transaction: REFUND_TX,
      refundFrom: null,
      findTransfers,
    });
    const uncovered = { refunds: [], uncovered: [[stream(1), 'transfer_before_charge']] };
    assert.deepEqual(essence(completed), refunded ? recorded([1, true]) : uncovered);
  });

test('a transaction that is used up refunds no payment that begins later; what is left of one does', async () => {
  const it = await begun(undefined);
  await complete(it.deps);
  await giveBegun(it, 2);
  assert.deepEqual(essence(await complete(it.deps)), {
    refunds: [[stream(1), false]],
    uncovered: [[stream(2), 'transfer_used']],
  });
  const larger = transactionOf(transferOf(3000n), transferOf(3000n));
  assert.deepEqual(essence(await complete(it.deps, larger, OTHER_TX)), recorded([2, true]));
  await giveBegun(it, 3);
  assert.deepEqual(essence(await complete(it.deps, larger, OTHER_TX)), recorded([2, false], [3, true]));
  assert.deepEqual(await refundsOf(it, 1, 2, 3), [[REFUND_TX], [OTHER_TX], [OTHER_TX]]);
});

test('four operators complete one transaction at the same moment: one refund', async () => {
  const it = await begun(undefined, undefined);
  const all = await Promise.all([1, 2, 3, 4].map(() => complete(world(it.common).deps)));
  for (const completed of all) assert.ok(completed.outcome === 'completed' && completed.refunds.length === 1);
  const newly = all.flatMap((completed) => (completed.outcome === 'completed' ? completed.refunds : []));
  assert.equal(newly.filter((refund) => refund.recorded).length, 1);
  assert.deepEqual(await refundsOf(it, 1, 2), [[REFUND_TX], []]);
  assert.deepEqual(await typesIn(it, claimStream(REFUND_TX)), ['RefundClaimed']);
});

test('an operator who reads the claims before another one claims and records: the refund is reported', async () => {
  const it = await begun(undefined);
  const slow = world(it.common).deps;
  let others: Promise<unknown> | null = null;
  const readStream: typeof slow.log.readStream = async (name, options) => {
    const events = await slow.log.readStream(name, options);
    if (name === claimStream(REFUND_TX)) others = others ?? complete(it.deps);
    await others;
    return events;
  };
  const log = Object.assign(Object.create(slow.log), { readStream });
  assert.deepEqual(essence(await complete({ ...slow, log })), recorded([1, false]));
  assert.deepEqual(await refundsOf(it, 1), [[REFUND_TX]]);
});

for (const [title, type, when] of [
  ['after the claim', 'RefundClaimed', 'after'],
  ['before the first of two records', 'PaymentRefunded', 'before'],
  ['after the first of two records', 'PaymentRefunded', 'after'],
] as const)
  test(`a run that ends ${title} is continued by the next, and nothing is recorded twice`, async () => {
    const it = await begun(undefined, undefined);
    const found = transactionOf(transferOf(6000n));
    it.log.onNext(type, dies(when));
    await assert.rejects(complete(it.deps, found));
    // What begins meanwhile gets none of what is claimed.
    await giveBegun(it, 3);
    const next = await complete(world(it.common).deps, found);
    const first = when === 'before' || type === 'RefundClaimed';
    assert.deepEqual(essence(next), {
      refunds: [
        [stream(1), first],
        [stream(2), true],
      ],
      uncovered: [[stream(3), 'transfer_used']],
    });
    assert.deepEqual(await refundsOf(it, 1, 2, 3), [[REFUND_TX], [REFUND_TX], []]);
  });

test('a payment that another transaction is claimed for is not claimed again', async () => {
  const it = await begun(undefined);
  it.log.onNext('RefundClaimed', dies('after'));
  await assert.rejects(complete(it.deps));
  assert.deepEqual(essence(await complete(it.deps, undefined, OTHER_TX)), {
    refunds: [],
    uncovered: [[stream(1), 'claimed_by_other']],
  });
  assert.deepEqual(await typesIn(it, claimStream(OTHER_TX)), []);
  assert.deepEqual(essence(await complete(it.deps)), recorded([1, true]));
});

test('two transactions that claim one payment at the same moment: one refunds it, the other the next one', async () => {
  const it = await begun(undefined, undefined);
  const claim = gate();
  it.log.onNext('RefundClaimed', claim.frozen);
  const slow = complete(world(it.common).deps);
  await claim.reached;
  assert.deepEqual(essence(await complete(it.deps, undefined, OTHER_TX)), {
    refunds: [[stream(1), true]],
    uncovered: [[stream(2), 'transfer_used']],
  });
  claim.open();
  assert.deepEqual(essence(await slow), recorded([2, true]));
  assert.deepEqual(await refundsOf(it, 1, 2), [[OTHER_TX], [REFUND_TX]]);
  const [, second] = await it.log.readStream(claimStream(REFUND_TX));
  assert.deepEqual(second?.data.released, [stream(1)]);
});

test('the same without a next one: the transfer is released, and refunds a payment that begins later', async () => {
  const it = await begun(undefined);
  const claim = gate();
  it.log.onNext('RefundClaimed', claim.frozen);
  const slow = complete(world(it.common).deps);
  await claim.reached;
  await complete(it.deps, undefined, OTHER_TX);
  claim.open();
  assert.deepEqual(essence(await slow), recorded());
  await giveBegun(it, 2);
  assert.deepEqual(essence(await complete(it.deps)), recorded([2, true]));
});

test('a refund that is cancelled at the moment of its claim begins again and is recorded', async () => {
  const it = await begun(undefined);
  it.log.onNext(
    'RefundClaimed',
    afterOthers(() => cancelPaymentRefund(it.deps, stream(1))),
  );
  assert.deepEqual(essence(await complete(it.deps)), recorded([1, true]));
  assert.deepEqual((await typesIn(it, stream(1))).slice(2), [
    'RefundBegun',
    'RefundCancelled',
    'RefundBegun',
    'PaymentRefunded',
  ]);
});

test('a claim of many refunds is stored in several events', async () => {
  const it = await begun(...Array(501).fill(undefined));
  const completed = await complete(it.deps, transactionOf(transferOf(501n * 3000n)));
  assert.ok(completed.outcome === 'completed');
  assert.equal(completed.refunds.filter((refund) => refund.recorded).length, 501);
  const claims = await it.log.readStream(claimStream(REFUND_TX));
  const counts = claims.map(({ data }) => (data.transfers as { refunds: object[] }[])[0]?.refunds.length);
  assert.deepEqual(counts, [500, 1]);
});

test('what the chain does not answer, or not with a transfer, records nothing', async () => {
  const it = await begun(undefined);
  const before = it.log.events.length;
  for (const found of [
    { outcome: 'missing', network } as const,
    { outcome: 'failed' } as const,
    { outcome: 'unavailable' } as const,
  ])
    assert.deepEqual(await complete(it.deps, found), found);
  const elsewhere = { ...transactionOf(transferOf(3000n)), network: 'eip155:1' };
  assert.deepEqual(essence(await complete(it.deps, elsewhere)), recorded());
  assert.equal(it.log.events.length, before);
});

test('a begin that ended before it saw that the call was running: it takes no transfer from another refund, until it is begun again', async () => {
  const it = world();
  const running = jobStarted({ jobId: jobOf(1) });
  await given(it, `job-${jobOf(1)}`, running);
  await giveBegun(it, 1);
  await giveBegun(it, 2);
  // The job of the third starts behind the begin, so that it sends nothing.
  await giveBegun(it, 3);
  await given(it, `job-${jobOf(3)}`, jobStarted({ jobId: jobOf(3) }));
  assert.deepEqual(essence(await complete(it.deps, transactionOf(transferOf(6000n)))), {
    refunds: [
      [stream(2), true],
      [stream(3), true],
    ],
    uncovered: [[stream(1), 'not_confirmed']],
  });
});
