import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentEvent } from '#src/domain/events.ts';
import { type Evidence, nextOfSettlement } from '#src/domain/payment/settlement.ts';
import { givenPayment } from '#test/support/given/given.ts';
import {
  at,
  JOB_ID,
  OTHER_JOB_ID,
  paymentMissing,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  settlementRetried,
  settlementUnknown,
} from '#test/support/given/given-events.ts';

const HASH = `0x${'a'.repeat(64)}`;
const PAID = { outcome: 'paid', transaction: HASH } as const;
const UNUSED = { outcome: 'unused', chainTimeSeconds: 0 } as const;
const REFUSED = { outcome: 'rejected', reason: 'insufficient_funds' } as const;
const LOST = { outcome: 'unknown', cause: 'no_answer', transaction: HASH } as const;

/** What follows: the event's type, or the kind of the step. */
function follows(events: readonly PaymentEvent[], evidence: Partial<Evidence>, jobId = JOB_ID): string {
  const known = { answer: null, finding: null, first: false, isOvertaken: false, isNoted: false, at: at(5) };
  const step = nextOfSettlement(givenPayment(...events).state, jobId, { ...known, ...evidence });
  return step.kind === 'append' ? step.fact.type : step.kind;
}

const OPEN = {
  reserved: [paymentReserved()],
  unknown: [paymentReserved(), settlementUnknown()],
  retried: [paymentReserved(), settlementUnknown(), settlementRetried()],
};

for (const [status, events] of Object.entries(OPEN)) {
  test(`${status}: the facilitator's success, and a transfer on the chain, are the charge`, () => {
    const answer = { outcome: 'settled', transaction: HASH } as const;
    assert.equal(follows(events, { answer }), 'PaymentSettled');
    assert.equal(follows(events, { finding: PAID }), 'PaymentSettled');
    for (const lost of [REFUSED, LOST])
      assert.equal(follows(events, { answer: lost, finding: PAID }), 'PaymentSettled');
  });
  test(`${status}: a refusal ends it only as the answer to the first call, and only while no other call has written`, () => {
    const refused = { answer: REFUSED, finding: UNUSED };
    assert.equal(follows(events, { ...refused, first: true }), 'PaymentRejected');
    assert.equal(follows(events, { ...refused, first: true, isOvertaken: true }), 'SettlementUnknown');
    assert.equal(follows(events, refused), 'SettlementUnknown');
  });
  test(`${status}: an answer that proves nothing is recorded once; without an answer nothing is`, () => {
    assert.equal(follows(events, { answer: LOST, finding: UNUSED }), 'SettlementUnknown');
    assert.equal(follows(events, { answer: LOST, finding: UNUSED, isNoted: true }), 'open');
    assert.equal(follows(events, { finding: UNUSED }), 'open');
  });
}

test('the charge is stored already, of this job or another one: the streams say what it buys', () => {
  const settled = [paymentReserved(), paymentSettled()];
  for (const jobId of [JOB_ID, OTHER_JOB_ID])
    assert.equal(follows(settled, { answer: LOST, finding: UNUSED }, jobId), 'elsewhere');
});

test('a payment that has ended, is another job’s or was found missing meanwhile: only its transfer is still a fact', () => {
  const rejected = [paymentReserved(), paymentRejected()];
  const released = [paymentReserved(), paymentReleased()];
  const missing = [paymentReserved(), paymentSettled(), paymentMissing()];
  for (const events of [rejected, released, missing]) {
    assert.equal(follows(events, { answer: LOST, finding: UNUSED, isOvertaken: true }), 'elsewhere');
    assert.equal(follows(events, { answer: LOST, finding: PAID, isOvertaken: true }), 'PaymentSettled');
  }
  assert.equal(follows(OPEN.reserved, { answer: LOST, finding: UNUSED }, OTHER_JOB_ID), 'elsewhere');
  assert.equal(follows(OPEN.reserved, { answer: LOST, finding: PAID }, OTHER_JOB_ID), 'PaymentSettled');
});

test('the money is the reservation’s, whichever job’s call moved it', () => {
  const { state } = givenPayment(paymentReserved({ jobId: OTHER_JOB_ID }));
  const known = { answer: null, first: false, isOvertaken: true, isNoted: true, at: at(5) };
  const step = nextOfSettlement(state, JOB_ID, { ...known, finding: PAID });
  assert.equal(step.kind === 'append' && step.fact.data.jobId, OTHER_JOB_ID);
});

test('a payment that is returned, or was never reserved, is settled for no job', () => {
  const returned = [paymentReserved(), paymentSettled(), refundBegun()];
  for (const events of [returned, []]) assert.equal(follows(events, { finding: PAID }), 'elsewhere');
});
