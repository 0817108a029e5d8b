// Refunds in an audit: an honest one is clean; one without its charge, a second one, and one of another amount are found.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { balancePayments } from '#src/usecases/payments/balance-payments.ts';
import { recordRefund } from '#src/usecases/payments/record-refund.ts';
import {
  audit,
  edited,
  findingTexts,
  givenRecord,
  nth,
  type Record,
  renumbered,
  without,
} from '#test/support/audited-record.ts';
import { afterOthers, dies } from '#test/support/fakes-log.ts';
import { otherPayment } from '#test/support/fakes-payments.ts';
import { given } from '#test/support/fakes-world.ts';
import { execute } from '#test/support/given-call.ts';
import { hex, paymentRefunded } from '#test/support/given-events.ts';

const TX = `0x${hex('e')}`;

/** Two paid jobs, the first one refunded. */
async function refunded(): Promise<{ it: Record; stream: string; other: string }> {
  const it = await givenRecord({ log: false });
  await it.paid();
  await it.paid();
  const [stream, other] = [0, 1].map((n) => nth(it.log.events, 'PaymentReserved', n).stream) as [
    string,
    string,
  ];
  const request = { id: stream, transaction: TX, findTransfer: null };
  assert.equal((await recordRefund(it.deps, request)).outcome, 'refunded');
  return { it, stream, other };
}
const eventIn = ({ log }: Record, type: string) => nth(log.events, type);

test('a recorded refund is clean', async () => {
  const { it } = await refunded();
  assert.deepEqual(findingTexts(await audit(it.log.events)), []);
});

test('a refund without a charge is found', async () => {
  const { it, stream } = await refunded();
  const charge = eventIn(it, 'PaymentSettled');
  const findings = findingTexts(await audit(renumbered(without(it.log.events, (event) => event === charge))));
  assert.ok(findings.includes(`payment_event_impossible ${stream} 1`), findings.join());
});

test('a second refund is found', async () => {
  const { it, stream } = await refunded();
  const { data } = eventIn(it, 'PaymentRefunded');
  await given(it.it, stream, paymentRefunded({ ...data, transaction: `0x${hex('f')}` }));
  assert.deepEqual(findingTexts(await audit(it.log.events)), [
    `payment_event_impossible ${stream} 3`,
    'books_unbalanced null null',
  ]);
});

test('a refund of another amount, payer or asset is found', async () => {
  const { it, stream } = await refunded();
  for (const [change, unbalanced] of [
    [{ amount: '2999' }, 1],
    [{ payer: '0x1' }, 0],
    // Neither the asset that was charged nor the one that was returned.
    [{ asset: '0x1' }, 2],
  ] as const)
    assert.deepEqual(
      findingTexts(await audit(edited(it.log.events, eventIn(it, 'PaymentRefunded'), change))),
      [`payment_mismatch ${stream} 2`, ...Array(unbalanced).fill('books_unbalanced null null')],
    );
});

test('one transfer that refunds two payments of a payer is clean, to two payers it is found', async () => {
  const { it, stream, other } = await refunded();
  const { data } = eventIn(it, 'PaymentRefunded');
  const { jobId = null } = nth(it.log.events, 'PaymentReserved', 1).data;
  await given(it.it, other, paymentRefunded({ ...data, jobId: String(jobId) }));
  assert.deepEqual(findingTexts(await audit(it.log.events)), []);
  const changed = edited(it.log.events, eventIn(it, 'PaymentRefunded'), { payer: '0x1' });
  assert.deepEqual(findingTexts(await audit(changed)), [
    `payment_mismatch ${stream} 2`,
    `payment_shared ${other} 2`,
  ]);
});

test('a job that is executed after its refund is found', async () => {
  const { it, stream } = await refunded();
  const [start, refund] = [eventIn(it, 'JobStarted'), eventIn(it, 'PaymentRefunded')];
  const early = without(it.log.events, (event) => event === refund).flatMap((event) =>
    event === start ? [refund, start] : [event],
  );
  assert.deepEqual(findingTexts(await audit(renumbered(early))), [`payment_mismatch ${start.stream} 2`]);
  assert.equal(refund.stream, stream);
});

test('the key of a refunded, unserved payment is released: clean', async () => {
  const it = await givenRecord({ log: false });
  const dying = it.process();
  it.log.onNext('JobStarted', dies('before'));
  await assert.rejects(execute(dying, { presented: otherPayment('1'), key: 'k' }));
  const { stream } = eventIn(it, 'PaymentReserved');
  await recordRefund(it.deps, { id: stream, transaction: TX, findTransfer: null });
  await execute(it.it, { presented: otherPayment('2'), key: 'k' });
  assert.equal(eventIn(it, 'IdempotencyKeyReleased').data.reason, 'payment_released');
  assert.deepEqual(findingTexts(await audit(it.log.events)), []);
});

test('a job whose payment was refunded before its start, and whose request was not sent, is clean', async () => {
  const refundFirst = async (it: Record) => {
    it.log.onNext(
      'JobStarted',
      afterOthers(() =>
        recordRefund(it.deps, {
          id: eventIn(it, 'PaymentReserved').stream,
          transaction: TX,
          findTransfer: null,
        }),
      ),
    );
    await it.paid();
    return it;
  };
  const it = await refundFirst(await givenRecord({ log: false }));
  assert.deepEqual(findingTexts(await audit(it.log.events)), []);
});

test('a refund that is decided before its job starts and recorded after its end: clean, and it counts as refunded', async () => {
  const it = await givenRecord({ log: false });
  it.log.onNext('JobStarted', dies('before'));
  await assert.rejects(execute(it.process(), { presented: otherPayment('1'), key: 'k' }));
  it.log.onNext(
    'PaymentRefunded',
    afterOthers(() => execute(it.it, { presented: otherPayment('1'), key: 'k' })),
  );
  const id = eventIn(it, 'PaymentReserved').stream;
  await recordRefund(it.deps, { id, transaction: TX, findTransfer: null });
  assert.equal(it.it.outbound.sent.length, 1);
  assert.deepEqual(findingTexts(await audit(it.log.events)), []);
  const [sums] = await balancePayments(it.log);
  assert.deepEqual(
    [sums?.charged, sums?.served, sums?.refunded, sums?.balanced],
    ['3000', '0', '3000', true],
  );
});
