// A charge that the chain does not have: it buys nothing until the chain shows it, and what it bought is replayed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { listOpenPayments } from '#test/support/given/books.ts';
import { execute, KEY_STREAM, paidWith } from '#test/support/given/given-call.ts';
import { PAYMENT_STREAM, paymentMissing, paymentReserved, T0 } from '#test/support/given/given-events.ts';
import { isUnconfirmed, outcomeOf, paymentTypes, ran } from '#test/support/given/given-payment.ts';
import { afterOthers, dies } from '#test/support/log/fakes-log.ts';
import { given, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

const jobOf = (it: Pick<World, 'log'>) => String(it.log.events[0]?.data.jobId);
const reportMissing = (it: World) => given(it, PAYMENT_STREAM, paymentMissing({ jobId: jobOf(it) }));
const stateOf = async (it: World) => (await listOpenPayments(it.deps))[0]?.state ?? null;
const surelyOver = Number(paymentReserved().data.validBefore) + 61;

/** Charged by the facilitator's answer, not on the chain, and its job has not started. */
async function missing() {
  const dying = world();
  dying.log.onNext('JobStarted', dies('before'));
  await assert.rejects(execute(dying));
  const it = world(dying.common);
  await reportMissing(it);
  return it;
}

test('missing: 503 until the chain shows it, and no second settle call; then its call is made', async () => {
  const it = await missing();
  assert.equal(await stateOf(it), 'missing');
  it.payments.scriptLookUp(
    { outcome: 'unavailable' },
    { outcome: 'unused', chainTimeSeconds: T0 / 1000 },
    { outcome: 'paid', transaction: `0x${'7'.repeat(64)}` },
  );
  await assert.rejects(execute(it), isUnconfirmed);
  await assert.rejects(execute(it), isUnconfirmed);
  assert.equal(it.outbound.sent.length, 0);
  const answer = await ran(it);
  assert.equal(answer.payment?.transaction, `0x${'7'.repeat(64)}`);
  assert.equal(it.payments.calls.settle, 1);
  assert.equal(await stateOf(it), null);
});

test('missing, and it can never be paid: 402, and its idempotency key is free for a new payment', async () => {
  const it = await missing();
  it.payments.scriptLookUp({ outcome: 'unused', chainTimeSeconds: surelyOver });
  assert.equal(outcomeOf(await execute(it)), 'payment_required');
  assert.equal(await stateOf(it), null);
  assert.equal(outcomeOf(await execute(it, paidWith(otherPayment()))), 'ran');
  assert.deepEqual(await typesIn(it, KEY_STREAM), [
    'IdempotencyKeyClaimed',
    'IdempotencyKeyReleased',
    'IdempotencyKeyClaimed',
  ]);
});

test('missing, repeated with a new payment and the same key: 409 until the first can never be paid', async () => {
  const it = await missing();
  it.payments.scriptLookUp(
    { outcome: 'unused', chainTimeSeconds: T0 / 1000 },
    { outcome: 'unused', chainTimeSeconds: surelyOver },
  );
  assert.equal(outcomeOf(await execute(it, paidWith(otherPayment()))), 'idempotency_in_progress');
  assert.equal(it.payments.ledger.size, 1);
  assert.equal(outcomeOf(await execute(it, paidWith(otherPayment()))), 'ran');
});

test('missing after its call was made: the call is replayed, and the loss stays listed', async () => {
  const it = world();
  await execute(it);
  await reportMissing(it);
  assert.equal(outcomeOf(await execute(it)), 'replayed');
  assert.equal(await stateOf(it), 'missing');
  assert.equal(it.outbound.sent.length, 1);
});

test('found missing while its job starts: the job is closed without sending its request', async () => {
  const it = world();
  it.log.onNext(
    'JobStarted',
    afterOthers(() => reportMissing(it)),
  );
  const answer = await ran(it);
  assert.equal(answer.job.errorCategory, 'not_executed');
  assert.equal(it.outbound.sent.length, 0);
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled', 'PaymentMissing']);
});
