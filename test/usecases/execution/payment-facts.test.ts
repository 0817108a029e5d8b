import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SettleAnswer } from '#src/domain/payment/settlement.ts';
import { execute, KEY_STREAM } from '#test/support/given/given-call.ts';
import {
  hex,
  keyReleased,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentRejected,
  paymentReleased,
  settlementRetried,
  settlementUnknown,
} from '#test/support/given/given-events.ts';
import {
  isLogAway,
  isUnconfirmed,
  keyClaimed,
  meets,
  paymentReserved,
  paymentTypes,
  ran,
  refusalOf,
  rejected,
  SETTLEMENT_WATCH,
} from '#test/support/given/given-payment.ts';
import { afterOthers, lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { given, type World, world } from '#test/support/world/fakes-world.ts';

const transaction = `0x${'1'.padStart(64, '0')}`;

// ── a settlement fact is never dropped ──────────────────────────────────────────────────────────────────

const whileSettling = (it: World, answer: SettleAnswer, act: () => Promise<unknown>) =>
  it.payments.scriptSettle(async (payment) => {
    await act();
    return answer.outcome === 'settled' ? it.payments.move(payment) : answer;
  });

test('settled, and another retried meanwhile: the fact follows the retry', async () => {
  const it = world();
  whileSettling(it, { outcome: 'settled', transaction }, () =>
    given(it, PAYMENT_STREAM, settlementRetried()),
  );
  assert.equal((await execute(it)).kind, 'ran');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementRetried', 'PaymentSettled']);
});

test('a terminal no that conflicts with a retry at its own append no longer counts either', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  it.log.onNext(
    'PaymentRejected',
    afterOthers(() => given(it, PAYMENT_STREAM, settlementRetried())),
  );
  await assert.rejects(execute(it), isUnconfirmed);
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementRetried', 'SettlementUnknown']);
});

const firstJob = (it: World) => String(it.log.events[0]?.data.jobId);
const THEIRS = `payment-${hex('4')}`;

for (const [why, end] of [
  ['rejected', (jobId: string) => paymentRejected({ jobId })],
  ['released', (jobId: string) => paymentReleased({ jobId })],
] as const) {
  test(`settled, and the stream says ${why} meanwhile: the fact is appended, and the same call executes`, async () => {
    const it = world();
    whileSettling(it, { outcome: 'settled', transaction }, async () => {
      await given(it, PAYMENT_STREAM, end(firstJob(it)));
      await given(it, KEY_STREAM, keyReleased({ jobId: firstJob(it) }));
    });
    const answer = await ran(it);
    assert.equal(answer.job.id, firstJob(it));
    assert.equal(answer.payment?.transaction, transaction);
    assert.deepEqual((await paymentTypes(it)).slice(2), ['PaymentSettled']);
    assert.equal(it.payments.calls.settle, 1);
  });
}

test('settled after all, and its key went to another: 409 at once, and the money stays on record', async () => {
  const it = world();
  whileSettling(it, { outcome: 'settled', transaction }, async () => {
    await given(it, PAYMENT_STREAM, paymentRejected({ jobId: firstJob(it) }));
    const theirs = keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: THEIRS });
    await given(it, KEY_STREAM, keyReleased({ jobId: firstJob(it) }), theirs);
    await given(it, THEIRS, paymentReserved({ jobId: OTHER_JOB_ID }));
  });
  for (let i = 0; i < 2; i++) {
    const answer = await refusalOf(it);
    assert.equal(answer.refused, 'idempotency_in_progress');
    assert.equal(answer.details, undefined, 'no job has started that could be named');
  }
  assert.deepEqual((await paymentTypes(it)).slice(1), ['PaymentRejected', 'PaymentSettled']);
  assert.deepEqual([it.payments.calls.settle, it.outbound.sent.length, it.slots.inFlight()], [1, 0, 0]);
});

test('the log goes away just when the money has moved: the fact waits for it, however long, behind the answer', async () => {
  const it = world();
  whileSettling(it, { outcome: 'settled', transaction }, async () => it.log.setAway(true));
  await assert.rejects(letPass(it.clock, execute(it)), isUnconfirmed);
  for (let waited = 0; waited < 600_000; waited += 10_000) {
    await quiet();
    it.clock.advance(10_000);
  }
  it.log.setAway(false);
  for (let i = 0; i < 3; i++) {
    await quiet();
    it.clock.advance(2000);
  }
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled']);
  assert.equal((await execute(it)).kind, 'replayed');
  assert.equal(it.payments.calls.settle, 1);
});

test("PaymentSettled's answer is lost: repeated with its own ids, one fact", async () => {
  const it = world();
  it.log.onNext('PaymentSettled', lostAnswer);
  it.log.onNext('PaymentSettled', unavailable);
  assert.equal((await letPass(it.clock, execute(it))).kind, 'ran');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled']);
});

// ── the log is unavailable before anything moved ───────────────────────────────────────────────────────────────

/** The log goes away at the next append of this type, and comes back after the caller has got its 503. */
async function awayAt(it: World, type: string) {
  it.log.onNext(type, async (store) => {
    it.log.setAway(true);
    return store();
  });
  const before = it.clock.monotonic();
  await assert.rejects(letPass(it.clock, execute(it)), isLogAway);
  assert.equal(it.clock.monotonic() - before, 2000);
  it.log.setAway(false);
  for (let i = 0; i < 3; i++) {
    it.clock.advance(2000);
    await quiet();
  }
}

test('the log is unavailable at SettlementRetried: the caller gets an error within seconds, and nothing is settled after the answer', async () => {
  const it = await meets(settlementUnknown());
  await awayAt(it, 'SettlementRetried');
  assert.deepEqual([it.payments.calls.settle, it.slots.inFlight()], [0, 0]);
  assert.equal((await paymentTypes(it)).at(-1), 'SettlementRetried');
  await execute(it);
  it.clock.advance(SETTLEMENT_WATCH);
  assert.equal((await execute(it)).kind, 'ran');
  assert.equal(it.payments.ledger.size, 1);
});

test('the log is unavailable at PaymentReleased: the caller gets an error within seconds, and the payment is free again', async () => {
  const it = world();
  const stream = 'payment-of-another';
  await given(it, stream, paymentReserved({ jobId: OTHER_JOB_ID }));
  await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }));
  await given(it, KEY_STREAM, keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: stream }));
  await awayAt(it, 'PaymentReleased');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentReleased']);
  assert.deepEqual([it.payments.calls.settle, it.slots.inFlight()], [0, 0]);
});
