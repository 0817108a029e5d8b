// A log that stores appends together: a payment is reserved and the key claimed in one append, and the settlement of the
// payment and the start of its job are one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { execute, KEY_STREAM } from '#test/support/given/given-call.ts';
import {
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  settlementUnknown,
} from '#test/support/given/given-events.ts';
import { keyClaimed, outcomeOf, paymentTypes } from '#test/support/given/given-payment.ts';
import {
  afterOthers,
  gate,
  type Interception,
  lostAnswer,
  unavailable,
} from '#test/support/log/fakes-log.ts';
import { letPass } from '#test/support/world/fakes.ts';
import { audited, given, shared, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

const TOGETHER = 'PaymentSettled+JobStarted';

/** `interceptions`: of the appends with JobStarted, in order. */
function withLog(...interceptions: readonly Interception[]): World {
  return intercepted('JobStarted', interceptions);
}

function intercepted(type: string, interceptions: readonly Interception[]): World {
  const it = world(shared({ together: true }));
  for (const interception of interceptions) it.log.onNext(type, interception);
  return it;
}

const jobOf = ({ log }: World) => String(log.events[0]?.data.jobId);

test('before the settle call there is one append, and one between it and the request', async () => {
  const it = withLog();
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.deepEqual(it.trace, [
    'PaymentReserved+IdempotencyKeyClaimed',
    'settle',
    TOGETHER,
    'send',
    'AttemptMade+JobCompleted+ReceiptSigned',
  ]);
  assert.equal((await audited(it, jobOf(it))).ok, true);
});

for (const [why, interception, type] of [
  ['the answer to the second is lost', lostAnswer, 'JobStarted'],
  ['the second did not reach the log', unavailable, 'JobStarted'],
  ['the answer to the first is lost', lostAnswer, 'IdempotencyKeyClaimed'],
  ['the first did not reach the log', unavailable, 'IdempotencyKeyClaimed'],
] as const)
  test(`${why}: repeated with the same ids until known; one settlement, one start, one call`, async () => {
    const it = intercepted(type, [interception, interception]);
    assert.equal(outcomeOf(await letPass(it.clock, execute(it))), 'ran');
    assert.equal(it.log.stored.filter((types) => types.includes(type)).length, 1);
    assert.equal(it.payments.calls.settle, 1);
    assert.equal(it.outbound.sent.length, 1);
  });

test('another process has recorded a look at the payment first: the settlement is not dropped, and the job runs once', async () => {
  const it = withLog();
  const others = () => given(it, PAYMENT_STREAM, settlementUnknown({ jobId: jobOf(it) }));
  it.log.onNext('JobStarted', afterOthers(others));
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementUnknown', 'PaymentSettled']);
  assert.deepEqual(it.log.stored.slice(-3, -1), ['PaymentSettled', 'JobStarted']);
  assert.equal(it.outbound.sent.length, 1);
});

test('the chain had settled it first, and its refund has begun: nothing of both is stored, nothing is sent', async () => {
  const it = withLog();
  const others = async () => {
    const jobId = jobOf(it);
    await given(it, PAYMENT_STREAM, paymentSettled({ jobId }), refundBegun({ jobId }));
  };
  it.log.onNext('JobStarted', afterOthers(others));
  assert.equal(outcomeOf(await execute(it)), 'payment_reused');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled', 'RefundBegun']);
  assert.deepEqual(await typesIn(it, `job-${jobOf(it)}`), []);
  assert.equal(it.outbound.sent.length, 0);
});

test('acknowledged after the lease: closed not_executed, and nothing is sent', async () => {
  const it = withLog(async (store) => {
    const answer = await store();
    it.clock.advance(10 * 60_000);
    return answer;
  });
  await execute(it).catch(() => null);
  await letPass(it.clock, Promise.resolve());
  const [, attempt, completed] = await it.log.readStream(`job-${jobOf(it)}`);
  assert.deepEqual([attempt?.data.sent, completed?.data.errorCategory], ['no', 'not_executed']);
  assert.equal(it.outbound.sent.length, 0);
});

test('of unknown fate for 2 s: the caller is answered, and repeats; stored at last, the job runs once', async () => {
  const { frozen, reached, open } = gate();
  const it = withLog(frozen);
  const answer = execute(it).catch((error: unknown) => error);
  await reached;
  it.clock.advance(2000);
  const fault = await answer;
  assert.ok(fault instanceof Fault);
  assert.equal(fault.code, 'event_log_unavailable');
  assert.match(fault.message, /nothing was sent so far. Repeat with the same payment header/);
  open();
  const repeated = await letPass(it.clock, execute(it));
  assert.ok(['ran', 'replayed', 'idempotency_in_progress'].includes(outcomeOf(repeated)));
  assert.equal(it.outbound.sent.length, 1);
  assert.equal(it.payments.calls.settle, 1);
});

test('another process claims the key first: nothing is stored for this call, and its payment is free', async () => {
  const it = intercepted('IdempotencyKeyClaimed', [
    afterOthers(() => given(it, KEY_STREAM, keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: null }))),
  ]);
  assert.equal(outcomeOf(await execute(it)), 'idempotency_in_progress');
  assert.deepEqual(await paymentTypes(it), []);
  assert.equal(it.payments.calls.settle, 0);
});

test('another process reserves the payment first: nothing of the claim is stored, and the payment is not settled here', async () => {
  const it = intercepted('IdempotencyKeyClaimed', [
    afterOthers(() => given(it, PAYMENT_STREAM, paymentReserved())),
  ]);
  assert.equal(outcomeOf(await execute(it)), 'payment_reused');
  assert.deepEqual(it.log.stored, ['PaymentReserved']);
  assert.equal(it.payments.calls.settle, 0);
});

for (const [what, key, type, again] of [
  [
    'with a key',
    'k1',
    'IdempotencyKeyClaimed',
    'PaymentReserved+IdempotencyKeyReleased+IdempotencyKeyClaimed',
  ],
  ['without a key', null, 'PaymentReserved', 'PaymentReserved'],
] as const)
  test(`${what}, a reservation is stored at last after another process has released it: it is made again before it is settled`, async () => {
    const it = intercepted(type, [
      async (store) => {
        const answer = await store();
        await given(it, PAYMENT_STREAM, paymentReleased({ jobId: jobOf(it) }));
        it.clock.advance(1500);
        return answer;
      },
    ]);
    assert.equal(outcomeOf(await execute(it, { key })), 'ran');
    assert.deepEqual(it.trace.slice(2, 5), [again, 'settle', TOGETHER]);
    assert.equal(it.payments.calls.settle, 1);
  });
