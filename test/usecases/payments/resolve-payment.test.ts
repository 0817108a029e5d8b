// Which verdicts an operator may record for an unconfirmed payment, and when.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentEvent } from '#src/domain/events.ts';
import { findKnown } from '#src/usecases/execution/idempotency.ts';
import { resolvePayment } from '#src/usecases/payments/resolve-payment.ts';
import { letPass } from '#test/support/fakes.ts';
import { afterOthers, lostAnswer } from '#test/support/fakes-log.ts';
import { given, typesIn, world } from '#test/support/fakes-world.ts';
import {
  at,
  CLAIM_STREAM,
  hex,
  JOB_ID,
  keyClaimed,
  PAYMENT_STREAM,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  settlementRetried,
  settlementUnknown,
} from '#test/support/given-events.ts';

const TRANSACTION = `0x${hex('a')}`;
const SETTLED = { kind: 'settled', transaction: TRANSACTION } as const;
const NOT_SETTLED = { kind: 'not_settled' } as const;
/** The samples' authorization ends 120 s after their beginning. */
const EXPIRED_MS = 120_000 + 60_000;

async function meets(...events: readonly PaymentEvent[]) {
  const it = world();
  if (events.length > 0) await given(it, PAYMENT_STREAM, ...events);
  return it;
}
const unknown = [paymentReserved(), settlementUnknown()];

test('--settled: recorded with the operator’s evidence and transaction, in each state that is open', async () => {
  const open = [[paymentReserved()], unknown, [paymentReserved(), settlementUnknown(), settlementRetried()]];
  for (const events of open) {
    const it = await meets(...events);
    it.clock.advance(7);
    assert.deepEqual(await resolvePayment(it.deps, PAYMENT_STREAM, SETTLED), {
      outcome: 'resolved',
      jobId: JOB_ID,
    });
    const last = (await it.log.readStream(PAYMENT_STREAM)).at(-1);
    assert.equal(last?.type, 'PaymentSettled');
    assert.deepEqual(last?.data, {
      v: 2,
      statement: null,
      jobId: JOB_ID,
      transaction: TRANSACTION,
      evidence: 'operator',
      settledAt: at(7),
    });
    assert.deepEqual(last?.metadata, { $correlationId: JOB_ID, $causationId: JOB_ID });
  }
});

test('--settled without a transaction: recorded as one that cannot be named', async () => {
  const it = await meets(...unknown);
  await resolvePayment(it.deps, PAYMENT_STREAM, { kind: 'settled', transaction: null });
  assert.equal((await it.log.readStream(PAYMENT_STREAM)).at(-1)?.data.transaction, null);
});

test('--not-settled: refused until a minute after the authorization ended, then recorded', async () => {
  const it = await meets(...unknown);
  it.clock.advance(EXPIRED_MS);
  assert.deepEqual(await resolvePayment(it.deps, PAYMENT_STREAM, NOT_SETTLED), {
    outcome: 'too_early',
    validBefore: Number(paymentReserved().data.validBefore),
  });
  assert.deepEqual(await typesIn(it, PAYMENT_STREAM), ['PaymentReserved', 'SettlementUnknown']);
  it.clock.advance(1000);
  const resolved = await resolvePayment(it.deps, PAYMENT_STREAM, NOT_SETTLED);
  assert.deepEqual(resolved, { outcome: 'resolved', jobId: JOB_ID });
  const last = (await it.log.readStream(PAYMENT_STREAM)).at(-1);
  assert.equal(last?.type, 'PaymentRejected');
  assert.deepEqual(last?.data, {
    v: 2,
    statement: null,
    jobId: JOB_ID,
    reason: 'operator_not_settled',
    evidence: 'operator',
    rejectedAt: at(EXPIRED_MS + 1000),
  });
});

test('--not-settled frees the key of the payment’s job', async () => {
  const it = await meets(...unknown);
  await given(it, CLAIM_STREAM, keyClaimed());
  it.clock.advance(EXPIRED_MS + 1000);
  const lookup = {
    paymentStream: null,
    claimStream: CLAIM_STREAM,
    fingerprint: hex('f'),
    authorization: null,
    payloadHash: null,
  };
  const before = await findKnown(it.deps, lookup);
  assert.equal(before.kind, 'held');
  await resolvePayment(it.deps, PAYMENT_STREAM, NOT_SETTLED);
  const known = await findKnown(it.deps, lookup);
  assert.deepEqual([known.kind, known.kind === 'new' && known.streams.release], ['new', 'payment_rejected']);
});

test('nothing to resolve: absent, settled, rejected, released', async () => {
  const over: readonly (readonly [string, readonly PaymentEvent[]])[] = [
    ['absent', []],
    ['settled', [...unknown, paymentSettled()]],
    ['rejected', [paymentReserved(), paymentRejected()]],
    ['released', [paymentReserved(), paymentReleased()]],
  ];
  for (const [status, events] of over) {
    for (const verdict of [SETTLED, NOT_SETTLED]) {
      const it = await meets(...events);
      it.clock.advance(EXPIRED_MS + 1000);
      const answer = await resolvePayment(it.deps, PAYMENT_STREAM, verdict);
      assert.deepEqual(answer, { outcome: 'nothing_to_resolve', status });
      assert.equal((await it.log.readStream(PAYMENT_STREAM)).length, events.length);
    }
  }
});

test('a service that settles first wins: the verdict is judged again and changes nothing', async () => {
  const it = await meets(...unknown);
  it.clock.advance(EXPIRED_MS + 1000);
  it.log.onNext(
    'PaymentRejected',
    afterOthers(() => given(it, PAYMENT_STREAM, paymentSettled())),
  );
  const answer = await resolvePayment(it.deps, PAYMENT_STREAM, NOT_SETTLED);
  assert.deepEqual(answer, { outcome: 'nothing_to_resolve', status: 'settled' });
  assert.deepEqual(await typesIn(it, PAYMENT_STREAM), [
    'PaymentReserved',
    'SettlementUnknown',
    'PaymentSettled',
  ]);
});

test('a retry that comes first does not end it: the verdict is appended at the new revision', async () => {
  const it = await meets(...unknown);
  it.log.onNext(
    'PaymentSettled',
    afterOthers(() => given(it, PAYMENT_STREAM, settlementRetried())),
  );
  const answer = await resolvePayment(it.deps, PAYMENT_STREAM, SETTLED);
  assert.deepEqual(answer, { outcome: 'resolved', jobId: JOB_ID });
  assert.equal((await it.log.readStream(PAYMENT_STREAM)).length, 4);
});

test('an append whose answer was lost is repeated and counts once', async () => {
  const it = await meets(...unknown);
  it.log.onNext('PaymentSettled', lostAnswer);
  const answer = await letPass(it.clock, resolvePayment(it.deps, PAYMENT_STREAM, SETTLED));
  assert.deepEqual(answer, { outcome: 'resolved', jobId: JOB_ID });
  assert.equal((await it.log.readStream(PAYMENT_STREAM)).length, 3);
});
