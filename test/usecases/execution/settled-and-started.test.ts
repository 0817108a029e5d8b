// A log that stores appends together: the settlement of a payment and the start of its job are one append.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { execute } from '#test/support/given/given-call.ts';
import {
  PAYMENT_STREAM,
  paymentSettled,
  refundBegun,
  settlementUnknown,
} from '#test/support/given/given-events.ts';
import { outcomeOf, paymentTypes } from '#test/support/given/given-payment.ts';
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
  const it = world(shared({ together: true }));
  for (const interception of interceptions) it.log.onNext('JobStarted', interception);
  return it;
}

const jobOf = ({ log }: World) => String(log.events[0]?.data.jobId);

test('between the settle call and the request there is one append', async () => {
  const it = withLog();
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.deepEqual(it.trace, [
    'PaymentReserved',
    'IdempotencyKeyClaimed',
    'settle',
    TOGETHER,
    'send',
    'AttemptMade+JobCompleted+ReceiptSigned',
  ]);
  assert.equal((await audited(it, jobOf(it))).ok, true);
});

for (const [why, interception] of [
  ['its answer is lost', lostAnswer],
  ['it did not reach the log', unavailable],
] as const)
  test(`${why}: repeated with the same ids until known; one settlement, one start, one call`, async () => {
    const it = withLog(interception, interception);
    assert.equal(outcomeOf(await letPass(it.clock, execute(it))), 'ran');
    assert.equal(it.log.stored.filter((types) => types.includes('JobStarted')).length, 1);
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
