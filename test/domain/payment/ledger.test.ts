// The sums of the money: given what happened before, when an event is entered, then the sums are these.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Books,
  enter,
  evolveEntry,
  isBalanced,
  type LedgerEntry,
  type LedgerEvent,
  type MoneyPaid,
  NO_ENTRY,
} from '#src/domain/payment/ledger.ts';
import {
  hex,
  jobCompleted,
  jobStarted,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentMissing,
  paymentRefunded,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  settlementCorrected,
  settlementUnknown,
} from '#test/support/given/given-events.ts';

const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
const PAYMENT = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction: null };
const started = (changes = {}) =>
  jobStarted({ mode: 'x402', payment: { ...PAYMENT, ...changes }, paymentStream: PAYMENT_STREAM });
const failed = (errorCategory: 'timeout' | 'interrupted_unknown' | 'not_executed') =>
  jobCompleted({ status: 'failed', errorCategory });

/** `[charged, served, refunded, open]` of each asset, `missing` if there is any, and `corrected` behind it, after the events of one payment and its jobs. */
function sumsOf(events: readonly LedgerEvent[]) {
  let books: Books = [];
  let entry: LedgerEntry = NO_ENTRY;
  const paid = new Map<string, MoneyPaid>();
  for (const event of events) {
    if (event.type === 'JobStarted' && event.data.payment !== null)
      paid.set(event.data.jobId, event.data.payment);
    const after = evolveEntry(entry, event);
    books = enter(books, event, entry, after, paid.get(event.data.jobId) ?? null);
    entry = after;
  }
  return books.map((sums) => ({
    sums: [
      sums.charged,
      sums.served,
      sums.refunded,
      sums.open,
      ...(sums.missing + sums.corrected === 0n ? [] : [sums.missing]),
      ...(sums.corrected === 0n ? [] : [sums.corrected]),
    ].map(Number),
    balanced: isBalanced(sums),
  }));
}

const STATED = paymentSettled().data.transaction;
const charged = [paymentReserved(), paymentSettled()];
const executed = [started(), jobCompleted()];

describe('given a payment, when this happens, then charged, served, refunded and open are', () => {
  for (const [title, events, sums] of [
    ['not charged: nothing', [paymentReserved(), settlementUnknown()], null],
    ['rejected: nothing', [paymentReserved(), paymentRejected()], null],
    ['charged: open', charged, [3000, 0, 0, 3000]],
    ['its job runs: open', [...charged, started()], [3000, 0, 0, 3000]],
    ['its job succeeded: served', [...charged, ...executed], [3000, 3000, 0, 0]],
    ['its target failed: served', [...charged, started(), failed('timeout')], [3000, 3000, 0, 0]],
    ['interrupted: open', [...charged, started(), failed('interrupted_unknown')], [3000, 0, 0, 3000]],
    ['not executed: open', [...charged, started(), failed('not_executed')], [3000, 0, 0, 3000]],
    ['refunded, never started', [...charged, refundBegun(), paymentRefunded()], [3000, 0, 3000, 0]],
    [
      'refunded after an interruption',
      [...charged, started(), failed('interrupted_unknown'), refundBegun(), paymentRefunded()],
      [3000, 0, 3000, 0],
    ],
    [
      'served, then refunded',
      [...charged, ...executed, refundBegun(), paymentRefunded()],
      [3000, 0, 3000, 0],
    ],
    [
      'refunded while its job ran, which then succeeded',
      [...charged, started(), refundBegun(), paymentRefunded(), jobCompleted()],
      [3000, 0, 3000, 0],
    ],
    [
      'refunded, and then started and not executed',
      [...charged, refundBegun(), paymentRefunded(), started(), failed('not_executed')],
      [3000, 0, 3000, 0],
    ],
    ['settled twice in the record: charged once', [...charged, paymentSettled()], [3000, 0, 0, 3000]],
    [
      'settled after its end, for the job that holds it by then',
      [
        paymentReserved(),
        paymentReleased(),
        paymentReserved({ jobId: OTHER_JOB_ID }),
        paymentSettled({ jobId: OTHER_JOB_ID }),
        ...executed.map(
          (event) => ({ ...event, data: { ...event.data, jobId: OTHER_JOB_ID } }) as LedgerEvent,
        ),
      ],
      [3000, 3000, 0, 0],
    ],
    ['missing, never started: open', [...charged, paymentMissing()], [3000, 0, 0, 3000, 3000]],
    ['missing, and served: served', [...charged, ...executed, paymentMissing()], [3000, 3000, 0, 0, 3000]],
    [
      'missing, and refunded: refunded',
      [...charged, refundBegun(), paymentRefunded(), paymentMissing()],
      [3000, 0, 3000, 0, 3000],
    ],
    [
      'missing twice in the record: missing once',
      [...charged, ...executed, paymentMissing(), paymentMissing()],
      [3000, 3000, 0, 0, 3000],
    ],
    [
      'missing, and then found on the chain',
      [...charged, ...executed, paymentMissing(), paymentSettled({ evidence: 'chain' })],
      [3000, 3000, 0, 0],
    ],
    [
      'missing, and it can never be paid: nothing',
      [...charged, paymentMissing(), paymentRejected()],
      [0, 0, 0, 0],
    ],
    ['corrected, and served', [...charged, ...executed, settlementCorrected()], [3000, 3000, 0, 0, 0, 3000]],
    [
      'corrected twice, and then missing: each once',
      [
        ...charged,
        settlementCorrected(),
        settlementCorrected({ transaction: `0x${hex('9')}` }),
        paymentMissing(),
      ],
      [3000, 0, 0, 3000, 3000, 3000],
    ],
    [
      'corrected to what was stated first, as by a reorganisation: not corrected',
      [...charged, settlementCorrected(), settlementCorrected({ transaction: String(STATED) })],
      [3000, 0, 0, 3000],
    ],
    [
      'found missing, and then on the chain in another transaction: corrected',
      [...charged, paymentMissing(), paymentSettled({ evidence: 'chain', transaction: `0x${hex('9')}` })],
      [3000, 0, 0, 3000, 0, 3000],
    ],
    [
      'the first transaction that is known: not corrected',
      [paymentReserved(), paymentSettled({ transaction: null }), settlementCorrected()],
      [3000, 0, 0, 3000],
    ],
    [
      'paid by its own payee: nothing',
      [paymentReserved({ payer: payTo }), paymentSettled(), started({ payer: payTo }), jobCompleted()],
      null,
    ],
    ['a job without a payment: nothing', [jobStarted(), jobCompleted()], null],
  ] as const) {
    test(title, () => {
      assert.deepEqual(sumsOf(events), sums === null ? [] : [{ sums, balanced: true }]);
    });
  }
});

describe('given a payment, when the streams contradict each other, then the sums do not balance:', () => {
  for (const [title, events] of [
    ['a job is served that was never charged', executed],
    [
      'a job states another amount than was charged',
      [...charged, started({ amount: '2999' }), jobCompleted()],
    ],
    ['a job states another asset than was charged', [...charged, started({ asset: '0x1' }), jobCompleted()]],
    [
      'one charge serves two jobs',
      [
        ...charged,
        ...executed,
        { ...started(), data: { ...started().data, jobId: OTHER_JOB_ID } },
        jobCompleted({ jobId: OTHER_JOB_ID }),
      ],
    ],
    ['a refund without a charge', [paymentReserved(), paymentRefunded()]],
    ['a second refund', [...charged, refundBegun(), paymentRefunded(), paymentRefunded()]],
    [
      'a refund of a charge that was taken back',
      [...charged, paymentMissing(), paymentRejected(), paymentRefunded()],
    ],
    ['a refund of another amount', [...charged, refundBegun(), paymentRefunded({ amount: '2999' })]],
  ] as const) {
    test(title, () => {
      assert.ok(sumsOf(events).some(({ balanced }) => !balanced));
    });
  }
});
