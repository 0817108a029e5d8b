// A payment was refused, which ended the claim of its key, and its money came all the same: while a new payment takes the key,
// the first payment's job may not start without claiming the key again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, KEY_STREAM, paidWith } from '#test/support/given/given-call.ts';
import { PAYMENT_STREAM, paymentRejected, paymentSettled, T0 } from '#test/support/given/given-events.ts';
import { outcomeOf, refusalOf, rejected, unknown } from '#test/support/given/given-payment.ts';
import { afterOthers, gate } from '#test/support/log/fakes-log.ts';
import { audited, given, shared, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

const firstJob = ({ log }: Pick<World, 'log'>) => String(log.events[0]?.data.jobId);

/** The facilitator moves the money of the first call and refuses it, and the node is behind. */
async function refusedAndPaid(together: boolean): Promise<World> {
  const it = world(shared({ together }));
  it.payments.scriptSettle((payment) => {
    it.payments.move(payment);
    return rejected;
  });
  it.payments.scriptLookUp({ outcome: 'unused', chainTimeSeconds: T0 / 1000 });
  assert.equal((await refusalOf(it)).refused, 'payment_required');
  return it;
}

const found = (it: World) => given(it, PAYMENT_STREAM, paymentSettled({ jobId: firstJob(it) }));
const paidBy = ({ transaction }: { transaction: string }) => ({ outcome: 'paid', transaction }) as const;
const sent = (...them: readonly World[]) => them.flatMap(({ outbound }) => outbound.sent).length;

for (const together of [true, false])
  for (const [what, repeat] of [
    ['is presented again', {}],
    ['is served to a third payment', paidWith(otherPayment('5'))],
  ] as const)
    test(`together ${together}: it ${what} before the new one has the key: one job, and the new one is unspent`, async () => {
      const it = await refusedAndPaid(together);
      const other = world(it.common);
      it.log.onNext(
        'IdempotencyKeyReleased',
        afterOthers(async () => {
          await found(it);
          assert.equal(outcomeOf(await execute(other, repeat)), 'ran');
        }),
      );
      assert.equal(outcomeOf(await execute(it, paidWith(otherPayment()))), 'replayed');
      assert.deepEqual([sent(it, other), it.payments.ledger.size], [1, 1]);
      assert.deepEqual(await typesIn(it, KEY_STREAM), [
        'IdempotencyKeyClaimed',
        'IdempotencyKeyReleased',
        'IdempotencyKeyClaimed',
      ]);
      assert.equal((await audited(it, firstJob(it))).ok, true);
    });

for (const together of [true, false])
  test(`together ${together}: the new one takes the key first: the first payment is not served, and stays to be returned`, async () => {
    const it = await refusedAndPaid(together);
    const other = world(it.common);
    const verifying = gate();
    it.payments.scriptVerify(() => verifying.frozen(async () => ({ outcome: 'valid' })));
    const taking = execute(it, paidWith(otherPayment()));
    await verifying.reached;
    await found(it);
    const taken = async () => {
      verifying.open();
      assert.equal(outcomeOf(await taking), 'ran');
    };
    other.log.onNext('IdempotencyKeyReleased', afterOthers(taken));
    assert.equal(outcomeOf(await execute(other)), 'idempotency_conflict');
    assert.equal(sent(it, other), 1);
    assert.deepEqual(await typesIn(it, `job-${firstJob(it)}`), []);
  });

test('refused and found by others while its call polls the chain: that call claims the key again, too', async () => {
  const it = world();
  const other = world(it.common);
  const [polling, verifying] = [gate(), gate()];
  it.payments.scriptSettle(unknown);
  it.payments.scriptLookUp((payment) => polling.frozen(async () => paidBy(it.payments.move(payment))));
  const first = execute(it);
  await polling.reached;
  await given(it, PAYMENT_STREAM, paymentRejected({ jobId: firstJob(it) }));
  it.payments.scriptVerify(() => verifying.frozen(async () => ({ outcome: 'valid' })));
  const taking = execute(other, paidWith(otherPayment()));
  await verifying.reached;
  await found(it);
  polling.open();
  const answer = await first;
  verifying.open();
  assert.equal(outcomeOf(answer), 'ran');
  assert.equal(outcomeOf(await taking), 'replayed');
  assert.deepEqual([sent(it, other), it.payments.ledger.size], [1, 1]);
});

test('refused, its key taken, and found by others while its call is frozen after its claim: it is not served', async () => {
  const it = world();
  const other = world(it.common);
  it.log.onNext('IdempotencyKeyClaimed', async (store) => {
    const claimed = await store();
    await given(it, PAYMENT_STREAM, paymentRejected({ jobId: firstJob(it) }));
    assert.equal(outcomeOf(await execute(other, paidWith(otherPayment()))), 'ran');
    await found(it);
    return claimed;
  });
  assert.equal(outcomeOf(await execute(it)), 'idempotency_conflict');
  assert.equal(sent(it, other), 1);
  assert.deepEqual(await typesIn(it, `job-${firstJob(it)}`), []);
});
