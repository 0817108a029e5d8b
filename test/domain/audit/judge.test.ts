// Payments, claims and checkpoints: given the history so far, when an event follows, then faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locationOf, streamFault } from '#src/domain/audit/finding.ts';
import { fitFault, keptFault } from '#src/domain/audit/judge-checkpoint.ts';
import {
  buysNothing,
  claimFault,
  judgePayment,
  NO_HISTORY,
  type PaymentHistory,
  paidFaults,
  unpaidFault,
} from '#src/domain/audit/judge-payment.ts';
import type { PaymentEvent } from '#src/domain/events.ts';
import {
  CLAIM_STREAM,
  decisionRecorded,
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  keyActivated,
  keyClaimed,
  keyReleased,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentMissing,
  paymentRefunded,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  settlementRetried,
  settlementUnknown,
} from '#test/support/given/given-events.ts';

function replay(...events: readonly PaymentEvent[]): { history: PaymentHistory; kinds: readonly string[] } {
  let history = NO_HISTORY;
  const kinds: string[] = [];
  for (const event of events) {
    const judged = judgePayment(history, event);
    history = judged.history;
    if (judged.fault !== null) kinds.push(judged.fault.kind);
  }
  return { history, kinds };
}
const other = { jobId: OTHER_JOB_ID };
const bad = ['payment_event_impossible'];

for (const [title, events, kinds] of [
  ['reserved and settled', [paymentReserved(), paymentSettled()], []],
  ['rejected by the first answer', [paymentReserved(), paymentRejected()], []],
  [
    'reserved again after its end',
    [paymentReserved(), paymentReleased(), paymentReserved(other), paymentSettled(other)],
    [],
  ],
  [
    'settled late, by a call of an earlier reservation: the money is the later one’s',
    [paymentReserved(), paymentRejected(), paymentReserved(other), paymentSettled(other)],
    [],
  ],
  [
    'ended by the chain after a lost answer',
    [paymentReserved(), settlementUnknown(), paymentRejected({ evidence: 'chain' })],
    [],
  ],
  [
    'refunded by the transaction of its charge',
    [
      paymentReserved(),
      paymentSettled(),
      refundBegun(),
      paymentRefunded({ transaction: String(paymentSettled().data.transaction) }),
    ],
    ['payment_mismatch'],
  ],
  ['refunded', [paymentReserved(), paymentSettled(), refundBegun(), paymentRefunded()], []],
  ['settled without a reservation', [paymentSettled()], bad],
  ['reserved twice', [paymentReserved(), paymentReserved(other)], bad],
  ['settled twice', [paymentReserved(), paymentSettled(), paymentSettled()], bad],
  ['unknown to another job', [paymentReserved(), settlementUnknown(other)], bad],
  ['settled for another job', [paymentReserved(), paymentSettled(other)], bad],
  ['rejected after the money is in', [paymentReserved(), paymentSettled(), paymentRejected()], bad],
  ['retried after the money is in', [paymentReserved(), paymentSettled(), settlementRetried()], bad],
] as const) {
  test(`a payment ${title}: ${kinds.join() || 'nothing to find'}`, () => {
    assert.deepEqual(replay(...events).kinds, kinds);
  });
}

test('an unpaid job needs no payment; a paid job with an empty payment stream lacks its own', () => {
  assert.deepEqual(paidFaults(jobStarted().data, null), []);
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
  const { transaction } = paymentSettled().data;
  const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction };
  const started = jobStarted({ mode: 'x402', payment, paymentStream: PAYMENT_STREAM }).data;
  const { history } = replay(paymentReserved(), paymentSettled());
  assert.deepEqual(paidFaults(started, history), []);
  for (const [before, kind] of [
    [null, 'payment_missing'],
    [NO_HISTORY, 'payment_missing'],
    [replay(paymentReserved(), paymentRejected()).history, 'payment_mismatch'],
    [replay(paymentReserved(other), paymentSettled(other)).history, 'payment_mismatch'],
    [{ ...history, servedBy: OTHER_JOB_ID }, 'payment_used_twice'],
  ] as const) {
    assert.deepEqual(
      paidFaults(started, before).map((fault) => fault.kind),
      [kind],
    );
  }
});

test('a payment that is refunded or found missing while its job starts: the job sends nothing', () => {
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
  const { transaction } = paymentSettled().data;
  const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction };
  const started = jobStarted({ mode: 'x402', payment, paymentStream: PAYMENT_STREAM }).data;
  for (const events of [[refundBegun()], [paymentMissing()], [paymentMissing(), paymentRejected()]]) {
    const { history } = replay(paymentReserved(), paymentSettled(), ...events);
    assert.deepEqual([paidFaults(started, history), buysNothing(history)], [[], true]);
    const unpaid = { ...history, startedUnpaid: true };
    const kindOf = (errorCategory: 'not_executed' | null) =>
      unpaidFault(jobCompleted({ errorCategory }).data, unpaid)?.kind ?? null;
    assert.deepEqual([kindOf('not_executed'), kindOf(null)], [null, 'payment_mismatch']);
  }
});

test('a key may be freed while its payment is in refund, as earlier releases did, and not otherwise', () => {
  const charged = [paymentReserved(), paymentSettled()];
  const freed = keyReleased({ reason: 'payment_released' });
  const kindOf = (events: readonly PaymentEvent[], claim: Partial<typeof claimed> = {}) => {
    const facts = { history: replay(...events).history, hasEnded: false, isOver: false };
    return claimFault({ ...claimed, ...claim }, freed, facts)?.kind ?? null;
  };
  const claimed = keyClaimed({ paymentStream: PAYMENT_STREAM }).data;
  assert.equal(kindOf([...charged, refundBegun()]), null);
  assert.equal(kindOf(charged), 'claim_event_impossible');
  assert.equal(kindOf([...charged, refundBegun()], other), 'claim_event_impossible');
});

test('a checkpoint fits by origin, size and root, in that order', () => {
  const [root, wrong] = [new Uint8Array(32), new Uint8Array(32).fill(1)];
  const head = { origin: 'a', size: 5, root };
  for (const [logged, kind] of [
    [{ last: null, leaves: 5, root }, null],
    [{ last: { origin: 'a', size: 4 }, leaves: 9, root }, null],
    [{ last: { origin: 'a', size: 5 }, leaves: 9, root }, 'checkpoint_repeated'],
    [{ last: { origin: 'a', size: 5 }, leaves: 9, root: wrong }, 'checkpoint_root_mismatch'],
    [{ last: { origin: 'b', size: 6 }, leaves: 4, root: null }, 'checkpoint_origin_changed'],
    [{ last: { origin: 'a', size: 6 }, leaves: 4, root: null }, 'checkpoint_shrinks'],
    [{ last: { origin: 'a', size: 4 }, leaves: 4, root: null }, 'checkpoint_ahead'],
    [{ last: { origin: 'a', size: 4 }, leaves: 5, root: wrong }, 'checkpoint_root_mismatch'],
  ] as const) {
    assert.equal(fitFault(head, logged)?.kind ?? null, kind);
  }
});

test('a kept checkpoint fits the same root under the same name only', () => {
  const root = new Uint8Array(32).fill(7);
  const kept = { origin: 'relay.example/receipts', size: 5, root, source: 'a file', note: '' };
  const facts = { origin: kept.origin, leaves: 9, root };
  const judged = (changes: object) => keptFault(kept, { ...facts, ...changes })?.kind ?? null;
  assert.equal(judged({}), null);
  assert.equal(judged({ origin: 'else.example/receipts' }), 'kept_checkpoint_origin_mismatch');
  assert.equal(judged({ origin: null }), 'kept_checkpoint_origin_mismatch');
  assert.equal(judged({ root: null, leaves: 4 }), 'kept_checkpoint_ahead');
  assert.equal(judged({ root: new Uint8Array(32) }), 'kept_checkpoint_root_mismatch');
});

test('an event belongs in the stream of its own id or kind only', () => {
  const decisionId = decisionRecorded().data.decisionId;
  for (const [event, stream, kind] of [
    [jobStarted(), `job-${JOB_ID}`, null],
    [jobStarted(), `job-${OTHER_JOB_ID}`, 'stream_mismatch'],
    [jobStarted(), `decision-${JOB_ID}`, 'event_misplaced'],
    [decisionRecorded(), `decision-${decisionId}`, null],
    [decisionRecorded(), 'decision-1', 'stream_mismatch'],
    [paymentReserved(), PAYMENT_STREAM, null],
    [paymentReserved(), `payment-${hex('9')}9`, 'event_misplaced'],
    [paymentReserved(), CLAIM_STREAM, 'event_misplaced'],
    [keyClaimed(), CLAIM_STREAM, null],
    [keyClaimed(), PAYMENT_STREAM, 'event_misplaced'],
    [keyActivated(), 'keys-relay', null],
    [keyActivated(), 'keys-other', 'event_misplaced'],
  ] as const) {
    assert.equal(streamFault(event, stream)?.kind ?? null, kind, stream);
  }
});

test('a location names the job of its stream, else the job that its event names', () => {
  const place = (stream: string, data = {}) =>
    locationOf({ stream, revision: 3n, position: '7', id: '', type: '', data, metadata: {}, created: '' })
      .jobId;
  assert.equal(place(`job-${JOB_ID}`, other), JOB_ID);
  assert.equal(place(PAYMENT_STREAM, other), OTHER_JOB_ID);
  assert.equal(place('keys-relay', { jobId: 7 }), null);
});
