// Refunds in an audit: honest ones are clean, whatever they met; what no honest operator can have written is found.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { cancelPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import {
  audit,
  edited,
  findingTexts,
  givenRecord,
  nth,
  type Record,
  renumbered,
  without,
} from '#test/support/given/audited-record.ts';
import { balancePayments } from '#test/support/given/books.ts';
import { execute } from '#test/support/given/given-call.ts';
import { hex, refundClaimed } from '#test/support/given/given-events.ts';
import {
  begin,
  complete,
  REFUND_TX,
  refund,
  transactionOf,
  transferOf,
} from '#test/support/given/given-refund.ts';
import { afterOthers, dies, gate } from '#test/support/log/fakes-log.ts';
import { given } from '#test/support/world/fakes-world.ts';

const OTHER_TX = `0x${hex('f')}`;
const CLAIMS = `refund-eip155:8453:${REFUND_TX}`;

/** Two paid jobs; the charge of the first is returned. */
async function refunded(): Promise<{ it: Record; stream: string; other: string }> {
  const it = await givenRecord({ log: false });
  await it.paid();
  await it.paid();
  const [stream = '', other = ''] = [0, 1].map((n) => nth(it.log.events, 'PaymentReserved', n).stream);
  await refund(it.deps, stream, { includeServed: true });
  return { it, stream, other };
}
const eventIn = ({ log }: Record, type: string, n = 0) => nth(log.events, type, n);
const findings = async (events: readonly RecordedEvent[]) => findingTexts(await audit(events));

/** Charged, and the process ended before the job started. */
async function unserved(): Promise<{ it: Record; stream: string }> {
  const it = await givenRecord({ log: false });
  it.log.onNext('JobStarted', dies('before'));
  await assert.rejects(execute(it.process(), { presented: otherPayment('1'), key: 'k' }));
  return { it, stream: eventIn(it, 'PaymentReserved').stream };
}
const call = (it: Record) => execute(it.it, { presented: otherPayment('1'), key: 'k' });

describe('clean', () => {
  test('a recorded refund, and one that has begun, which is noted', async () => {
    const { it, other } = await refunded();
    assert.deepEqual(await findings(it.log.events), []);
    await begin(it.deps, other, { includeServed: true });
    const audited = await audit(it.log.events);
    assert.deepEqual([findingTexts(audited), audited.summary.notes.begunRefunds], [[], 1]);
  });

  test('a refund that was cancelled, and its call made afterwards', async () => {
    const { it, stream } = await unserved();
    await begin(it.deps, stream);
    await cancelPaymentRefund(it.deps, stream);
    assert.equal((await call(it)).kind, 'ran');
    assert.deepEqual(await findings(it.log.events), []);
  });

  test('the key of a payment in refund, taken by another payment', async () => {
    const { it, stream } = await unserved();
    await refund(it.deps, stream);
    await execute(it.it, { presented: otherPayment('2'), key: 'k' });
    assert.equal(eventIn(it, 'IdempotencyKeyReleased').data.reason, 'payment_released');
    assert.deepEqual(await findings(it.log.events), []);
  });

  test('a job that started after the begin of the refund, and sent nothing', async () => {
    const { it, stream } = await unserved();
    it.log.onNext(
      'JobStarted',
      afterOthers(() => refund(it.deps, stream)),
    );
    await call(it);
    assert.equal(it.outbound.sent.length, 0);
    assert.deepEqual(await findings(it.log.events), []);
  });

  test('a job that was executed while its refund began, which was cancelled', async () => {
    const { it, stream } = await unserved();
    it.log.onNext(
      'RefundBegun',
      afterOthers(() => call(it)),
    );
    assert.equal((await begin(it.deps, stream)).outcome, 'refused');
    assert.equal(it.outbound.sent.length, 1);
    assert.deepEqual(await findings(it.log.events), []);
  });

  test('a refund that was cancelled at the moment of its claim: recorded, and it counts as refunded', async () => {
    const { it, stream } = await unserved();
    await begin(it.deps, stream);
    it.log.onNext(
      'RefundClaimed',
      afterOthers(() => cancelPaymentRefund(it.deps, stream)),
    );
    await complete(it.deps);
    assert.deepEqual(await findings(it.log.events), []);
    const [sums] = await balancePayments(it.log);
    assert.deepEqual([sums?.charged, sums?.refunded, sums?.balanced], ['3000', '3000', true]);
  });

  test('two transactions that claimed one payment at the same moment', async () => {
    const it = await givenRecord({ log: false });
    await it.paid();
    await it.paid();
    for (const n of [0, 1])
      await begin(it.deps, eventIn(it, 'PaymentReserved', n).stream, { includeServed: true });
    const claim = gate();
    it.log.onNext('RefundClaimed', claim.frozen);
    const slow = complete(it.process().deps);
    await claim.reached;
    await complete(it.deps, undefined, OTHER_TX);
    claim.open();
    await slow;
    assert.equal(it.log.events.filter(({ type }) => type === 'PaymentRefunded').length, 2);
    assert.deepEqual(await findings(it.log.events), []);
  });

  test('a run that ended after its claim', async () => {
    const { it, stream } = await unserved();
    await begin(it.deps, stream);
    it.log.onNext('RefundClaimed', dies('after'));
    await assert.rejects(complete(it.deps));
    assert.deepEqual(await findings(it.log.events), []);
  });

  test('refunds of version 1, which had neither begin nor claim', async () => {
    const { it, stream, other } = await refunded();
    const { sender: _, ...recorded } = eventIn(it, 'PaymentRefunded').data;
    const old = { ...recorded, v: 1, transaction: OTHER_TX };
    const started = it.log.events.filter(
      ({ type, stream: of }) => of === stream && (type === 'RefundBegun' || type === 'PaymentRefunded'),
    );
    const past = without(it.log.events, (event) => started.includes(event) || event.type === 'RefundClaimed');
    const last = eventIn(it, 'PaymentRefunded');
    const jobId = String(eventIn(it, 'PaymentReserved', 1).data.jobId);
    const both = [
      { ...last, data: old },
      { ...last, id: crypto.randomUUID(), stream: other, data: { ...old, jobId } },
    ];
    assert.deepEqual(await findings(renumbered([...past, ...both])), []);
    const stranger = {
      ...last,
      id: crypto.randomUUID(),
      stream: other,
      data: { ...old, jobId, payer: '0x1' },
    };
    const found = await findings(renumbered([...past, ...both.slice(0, 1), stranger]));
    assert.deepEqual(found, [`payment_mismatch ${other} 2`, `payment_shared ${other} 2`]);
  });
});

describe('found', () => {
  test('a job that is executed after the begin of its refund', async () => {
    const { it, stream } = await refunded();
    const start = eventIn(it, 'JobStarted');
    const ofRefund = it.log.events.filter(
      ({ type }) => type.startsWith('Refund') || type === 'PaymentRefunded',
    );
    const early = without(it.log.events, (event) => ofRefund.includes(event)).flatMap((event) =>
      event === start ? [...ofRefund, start] : [event],
    );
    const begun = edited(early, eventIn(it, 'RefundBegun'), { served: false });
    assert.deepEqual(await findings(renumbered(begun)), [`payment_mismatch ${start.stream} 2`]);
    // A begin that names a call as made which was not.
    assert.deepEqual(await findings(renumbered(early)), [
      `payment_event_impossible ${stream} 2`,
      `payment_mismatch ${start.stream} 2`,
    ]);
  });

  /** The claim of the first refund, changed. */
  const withClaim = (it: Record, change: (transfer: ReturnType<typeof transferIn>) => object) =>
    edited(it.log.events, eventIn(it, 'RefundClaimed'), { transfers: [change(transferIn(it))] } as never);
  const transferIn = (it: Record) => {
    const [transfer] = eventIn(it, 'RefundClaimed').data.transfers as unknown as ReturnType<
      typeof refundClaimed
    >['data']['transfers'];
    return transfer ?? assert.fail();
  };

  test('refunds that add up to more than their transfer, in one claim or in several', async () => {
    const { it, other } = await refunded();
    const small = withClaim(it, (transfer) => ({ ...transfer, amount: '2999' }));
    assert.deepEqual(await findings(small), [`refund_exceeds_transfer ${CLAIMS} 0`]);
    const { jobId } = eventIn(it, 'PaymentReserved', 1).data;
    const refunds = [{ payment: other, jobId: String(jobId), amount: '3000' }];
    const second = refundClaimed({ transaction: REFUND_TX, transfers: [{ ...transferIn(it), refunds }] });
    await given(it.it, CLAIMS, second);
    assert.deepEqual(await findings(it.log.events), [`refund_exceeds_transfer ${CLAIMS} 1`]);
    const grown = { ...second.data, transfers: [{ ...transferIn(it), refunds, amount: '6000' }] };
    const changed = edited(it.log.events, nth(it.log.events, 'RefundClaimed', 1), grown as never);
    assert.deepEqual(await findings(changed), [
      `refund_event_impossible ${CLAIMS} 1`,
      `refund_exceeds_transfer ${CLAIMS} 1`,
    ]);
  });

  test('a claim for another payer, amount or job than the charge, or for no charge', async () => {
    const { it, stream } = await refunded();
    const refunds = (change: object) => (transfer: ReturnType<typeof transferIn>) => ({
      ...transfer,
      refunds: transfer.refunds.map((one) => ({ ...one, ...change })),
    });
    for (const [changed, more] of [
      [withClaim(it, (transfer) => ({ ...transfer, payer: '0x1' })), true],
      [withClaim(it, refunds({ amount: '2000' })), true],
      [withClaim(it, refunds({ jobId: 'job_1' })), false],
    ] as const)
      assert.deepEqual(await findings(changed), [
        `payment_mismatch ${CLAIMS} 0`,
        ...(more ? [`refund_unclaimed ${stream} 3`] : []),
      ]);
    const nowhere = withClaim(it, refunds({ payment: `payment-${hex('9')}` }));
    assert.deepEqual(await findings(nowhere), [
      `payment_missing ${CLAIMS} 0`,
      `refund_unclaimed ${stream} 3`,
    ]);
  });

  test('a payment that is claimed twice by one transaction, or released without a claim', async () => {
    const { it } = await refunded();
    const claims = `refund-eip155:8453:${OTHER_TX}`;
    const large = { ...transferIn(it), amount: '9000' };
    await given(
      it.it,
      claims,
      refundClaimed({ transaction: OTHER_TX, transfers: [], released: [`payment-${hex('9')}`] }),
    );
    assert.deepEqual(await findings(it.log.events), [`refund_event_impossible ${claims} 0`]);
    const twice = withClaim(it, () => ({ ...large, refunds: [...large.refunds, ...large.refunds] }));
    const [, ...rest] = await findings(without(twice, ({ stream }) => stream === claims));
    assert.deepEqual(rest, [`refund_event_impossible ${CLAIMS} 0`]);
  });

  test('one payment in the claims of two transactions', async () => {
    const { it, other } = await refunded();
    const claims = (transaction: string, payment: string, jobId: string) =>
      refundClaimed({
        transaction,
        transfers: [{ ...transferIn(it), refunds: [{ payment, jobId, amount: '3000' }] }],
      });
    const [first, second] = [0, 1].map((n) => eventIn(it, 'PaymentReserved', n));
    assert.ok(first !== undefined && second !== undefined);
    // Refunded by the one, claimed by the other.
    const again = claims(OTHER_TX, first.stream, String(first.data.jobId));
    await given(it.it, `refund-eip155:8453:${OTHER_TX}`, again);
    assert.deepEqual(await findings(it.log.events), ['payment_claimed_twice null null']);
    // Claimed by both, and recorded by none.
    const fresh = await refunded();
    await begin(fresh.it.deps, fresh.other, { includeServed: true });
    const jobId = String(eventIn(fresh.it, 'PaymentReserved', 1).data.jobId);
    for (const digit of ['a', 'b']) {
      const transaction = `0x${hex(digit)}`;
      const data = { ...claims(transaction, fresh.other, jobId) };
      await given(fresh.it.it, `refund-eip155:8453:${transaction}`, data);
    }
    assert.deepEqual(await findings(fresh.it.log.events), ['payment_claimed_twice null null']);
    assert.equal(typeof other, 'string');
  });

  test('a transaction that refunded without claims, and was claimed later', async () => {
    const { it, other } = await refunded();
    const { sender: _, ...data } = eventIn(it, 'PaymentRefunded').data;
    const jobId = String(eventIn(it, 'PaymentReserved', 1).data.jobId);
    await given(it.it, other, { type: 'PaymentRefunded', data: { ...data, v: 1, jobId } });
    assert.deepEqual(await findings(it.log.events), [`payment_shared ${other} 2`]);
  });
});

test('two payers in one transaction: clean', async () => {
  const it = await givenRecord({ log: false });
  await it.paid();
  const payer = `0x${'3'.repeat(40)}`;
  await it.paid({ presented: otherPayment('9', { payer }) });
  for (const n of [0, 1])
    await begin(it.deps, eventIn(it, 'PaymentReserved', n).stream, { includeServed: true });
  await complete(it.deps, transactionOf(transferOf(3000n), transferOf(3000n, { recipient: payer })));
  assert.equal(it.log.events.filter(({ type }) => type === 'PaymentRefunded').length, 2);
  assert.deepEqual(await findings(it.log.events), []);
});
