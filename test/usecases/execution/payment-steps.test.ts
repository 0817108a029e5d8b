import assert from 'node:assert/strict';
import { test } from 'node:test';
import { otherPayment, presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, paidWith } from '#test/support/given/given-call.ts';
import { PAYMENT_STREAM, settlementUnknown } from '#test/support/given/given-events.ts';
import {
  isUnconfirmed,
  meets,
  outcomeOf,
  paymentReserved,
  paymentTypes,
  ran,
  refusalOf,
  rejected,
  unknown,
} from '#test/support/given/given-payment.ts';
import { gate } from '#test/support/log/fakes-log.ts';
import { quiet } from '#test/support/world/fakes.ts';
import { world } from '#test/support/world/fakes-world.ts';

const CLOSING = 'AttemptMade+JobCompleted+ReceiptSigned';
const transaction = `0x${'1'.padStart(64, '0')}`;

// ── the order ───────────────────────────────────────────────────────────────────────────────────────────

test('nothing is settled before the key is durably held', async () => {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('IdempotencyKeyClaimed', frozen);
  const collecting = execute(it);
  await reached;
  await quiet();
  assert.equal(it.payments.calls.settle, 0);
  open();
  assert.equal((await collecting).kind, 'ran');
});

test('the facts of the payment are those that were reserved and settled, and its signature is nowhere', async () => {
  const it = world();
  const answer = await ran(it);
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = presentedPayment();
  const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction };
  assert.deepEqual(answer.payment, payment);
  const jobId = answer.job.id;
  const [reserved] = await it.log.readStream(PAYMENT_STREAM);
  assert.deepEqual(reserved?.data, paymentReserved({ jobId, owner: it.owner }).data);
  const { carried } = presentedPayment();
  assert.doesNotMatch(
    JSON.stringify(it.log.events.map(({ data, metadata }) => ({ data, metadata }))),
    /in memory only/,
  );
  assert.match(JSON.stringify(carried), /in memory only/);
});

// ── what the settle call answers ────────────────────────────────────────────────────────────────────────

test('a terminal no to the first call, and unused on chain: PaymentRejected, 402 with its reason', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  const answer = await refusalOf(it);
  assert.equal(answer.refused, 'payment_required');
  assert.deepEqual(answer.details, { reason: 'insufficient_funds' });
  assert.deepEqual(it.trace, [
    'PaymentReserved',
    'IdempotencyKeyClaimed',
    'settle',
    'lookUp',
    'PaymentRejected',
  ]);
});

test('the key of a rejected payment: the next caller releases and claims it in one append', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  assert.equal(outcomeOf(await execute(it)), 'payment_required');
  assert.equal((await execute(it, paidWith(otherPayment()))).kind, 'ran');
  assert.deepEqual(it.log.stored.slice(2, 6), [
    'PaymentRejected',
    'PaymentReserved',
    'IdempotencyKeyReleased+IdempotencyKeyClaimed',
    'PaymentSettled',
  ]);
  assert.equal(outcomeOf(await execute(it)), 'replayed', 'the first payment never moved: the key answers');
  assert.deepEqual([it.payments.ledger.size, it.outbound.sent.length], [1, 1]);
});

test('unknown, not settled: the same payment resumes at once, under its own job, charged once', async () => {
  const it = world();
  it.payments.scriptSettle(unknown);
  await assert.rejects(execute(it), isUnconfirmed);
  const answer = await ran(world(it.common));
  const [reserved] = await it.log.readStream(PAYMENT_STREAM);
  assert.equal(answer.job.id, reserved?.data.jobId);
  assert.deepEqual(it.trace.slice(2), [
    'settle',
    'lookUp',
    'SettlementUnknown',
    'lookUp',
    'SettlementRetried',
    'settle',
    'PaymentSettled',
    'JobStarted',
    'send',
    CLOSING,
  ]);
  assert.equal(it.payments.ledger.size, 1);
});

test('a terminal no to a later call stays unknown: never a fresh 402 for a payment that may have moved', async () => {
  const it = await meets(settlementUnknown());
  it.payments.scriptSettle(rejected, rejected);
  for (let i = 0; i < 2; i++) await assert.rejects(execute(it), isUnconfirmed);
  assert.deepEqual((await paymentTypes(it)).slice(2), [
    'SettlementRetried',
    'SettlementUnknown',
    'SettlementRetried',
    'SettlementUnknown',
  ]);
});

// ── what the chain says ─────────────────────────────────────────────────────────────────────────────────

test('unknown, and the chain shows the transfer: settled by that evidence, not settled again', async () => {
  const it = await meets(settlementUnknown());
  it.payments.scriptLookUp({ outcome: 'paid', transaction: '0xseen' });
  const collected = await ran(it);
  assert.equal(collected.payment?.transaction, '0xseen');
  assert.equal(it.payments.calls.settle, 0);
  const last = (await it.log.readStream(PAYMENT_STREAM)).at(-1);
  assert.deepEqual([last?.type, last?.data.evidence], ['PaymentSettled', 'chain']);
});
