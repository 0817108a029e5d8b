import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { PaymentEvent } from '#src/domain/events.ts';
import {
  concludeSettlement,
  type Inconclusive,
  settlementUnknown as settlementUnknownOf,
} from '#src/domain/payment/settlement.ts';
import {
  absentPayment,
  type ChainFinding,
  evolvePayment,
  isBound,
  isCorrected,
  type Payment,
  reconcile,
} from '#src/domain/payment/state.ts';
import { givenPayment } from '#test/support/given/given.ts';
import {
  at,
  OTHER_JOB_ID,
  paymentDeferred,
  paymentMissing,
  paymentRefunded,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  refundCancelled,
  settlementCorrected,
  settlementRetried,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';
import { runs } from '#test/support/given/property-runs.ts';

const PATHS: Record<Payment['status'], readonly PaymentEvent[]> = {
  absent: [],
  reserved: [paymentReserved()],
  unknown: [paymentReserved(), settlementUnknown()],
  retried: [paymentReserved(), settlementUnknown(), settlementRetried()],
  settled: [paymentReserved(), paymentSettled()],
  missing: [paymentReserved(), paymentSettled(), paymentMissing()],
  refunding: [paymentReserved(), paymentSettled(), refundBegun()],
  refunded: [paymentReserved(), paymentSettled(), refundBegun(), paymentRefunded()],
  rejected: [paymentReserved(), paymentRejected()],
  released: [paymentReserved(), paymentReleased()],
};
const again = paymentReserved({ jobId: OTHER_JOB_ID });
const deferredAgain = paymentDeferred({ jobId: OTHER_JOB_ID });
const EVENTS: Record<PaymentEvent['type'], PaymentEvent> = {
  PaymentReserved: again,
  PaymentDeferred: deferredAgain,
  PaymentSettled: paymentSettled(),
  PaymentRejected: paymentRejected(),
  PaymentReleased: paymentReleased(),
  SettlementUnknown: settlementUnknown(),
  SettlementRetried: settlementRetried(),
  RefundBegun: refundBegun(),
  RefundCancelled: refundCancelled(),
  PaymentRefunded: paymentRefunded(),
  PaymentMissing: paymentMissing(),
  SettlementCorrected: settlementCorrected(),
};

const NEXT: Record<Payment['status'], Record<PaymentEvent['type'], Payment['status']>> = {
  absent: to({ PaymentReserved: 'reserved' }, 'absent'),
  reserved: to(
    {
      PaymentSettled: 'settled',
      PaymentRejected: 'rejected',
      PaymentReleased: 'released',
      SettlementUnknown: 'unknown',
      SettlementRetried: 'retried',
    },
    'reserved',
  ),
  unknown: to(
    {
      PaymentSettled: 'settled',
      PaymentRejected: 'rejected',
      PaymentReleased: 'released',
      SettlementRetried: 'retried',
    },
    'unknown',
  ),
  retried: to(
    {
      PaymentSettled: 'settled',
      PaymentRejected: 'rejected',
      PaymentReleased: 'released',
      SettlementUnknown: 'unknown',
    },
    'retried',
  ),
  settled: to({ RefundBegun: 'refunding', PaymentMissing: 'missing' }, 'settled'),
  missing: to(
    { PaymentSettled: 'settled', PaymentRejected: 'rejected', RefundBegun: 'refunding' },
    'missing',
  ),
  refunding: to({ RefundCancelled: 'settled', PaymentRefunded: 'refunded' }, 'refunding'),
  refunded: to({}, 'refunded'),
  rejected: to(
    { PaymentReserved: 'reserved', PaymentDeferred: 'absent', PaymentSettled: 'settled' },
    'rejected',
  ),
  released: to(
    { PaymentReserved: 'reserved', PaymentDeferred: 'absent', PaymentSettled: 'settled' },
    'released',
  ),
};
function to(moves: Partial<Record<PaymentEvent['type'], Payment['status']>>, stay: Payment['status']) {
  const none = Object.fromEntries(Object.keys(EVENTS).map((type) => [type, stay]));
  return { ...none, ...moves } as Record<PaymentEvent['type'], Payment['status']>;
}

for (const status of Object.keys(NEXT) as Payment['status'][]) {
  const moves = Object.entries(NEXT[status]).filter(([, next]) => next !== status);
  test(`a payment that is ${status} may become: ${moves.map(([, next]) => next).join(', ') || 'nothing else'}`, () => {
    const { state } = givenPayment(...PATHS[status]);
    assert.equal(state.status, status);
    for (const [type, next] of Object.entries(NEXT[status])) {
      const event = EVENTS[type as PaymentEvent['type']];
      const after = evolvePayment(state, event);
      assert.equal(after.status, next, `${type} on ${status}`);
      const isReturned = status === 'refunding' || status === 'refunded';
      const learns =
        (isReturned && type === 'PaymentMissing') ||
        ((isReturned || status === 'settled') && type === 'SettlementCorrected');
      const isPledged = status === 'absent' && type === 'PaymentDeferred';
      if (
        next === status &&
        !learns &&
        !isPledged &&
        !(type in { SettlementUnknown: 1, SettlementRetried: 1 })
      )
        assert.equal(after, state);
      if (after.status === 'absent' || state.status === 'absent') continue;
      const bound = type === 'PaymentReserved' && next === 'reserved' && status !== 'reserved';
      assert.deepEqual(after.reserved, bound ? again.data : state.reserved);
    }
  });
}

test('any sequence: a charge is never forgotten unless it is missing, and a bound payment never changes its job', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...Object.values(EVENTS), paymentReserved()), { maxLength: 15 }),
      (events) => {
        let payment: Payment = absentPayment;
        for (const event of events) {
          const before = payment;
          payment = evolvePayment(before, event);
          if (before.status === 'settled')
            assert.ok(['settled', 'missing', 'refunding'].includes(payment.status));
          if (before.status === 'missing')
            assert.ok(['settled', 'missing', 'rejected', 'refunding'].includes(payment.status));
          if (before.status === 'refunding')
            assert.ok(['settled', 'missing', 'refunding', 'refunded'].includes(payment.status));
          if (before.status === 'refunded') assert.equal(payment.status, 'refunded');
          if (isBound(before))
            assert.equal(payment.status === 'absent' ? null : payment.reserved, before.reserved);
        }
      },
    ),
    { numRuns: runs(2000) },
  );
});

test('the money of an authorization is in, whichever job asked for it: settled for the job it is reserved for now', () => {
  const settled = paymentSettled();
  for (const end of [paymentRejected(), paymentReleased()]) {
    const { state } = givenPayment(paymentReserved(), end, again, settled);
    const charge = { ...settled.data, stated: null };
    assert.deepEqual(state, { status: 'settled', reserved: again.data, settled: charge });
  }
});

test('a refunded payment whose charge is missing stays refunded, and the loss is recorded until the chain shows it', () => {
  const { state } = givenPayment(...PATHS.refunded, paymentMissing());
  assert.ok(state.status === 'refunded');
  assert.deepEqual(state.missing, paymentMissing().data);
  const found = paymentSettled({ evidence: 'chain', transaction: `0x${'9'.repeat(64)}` });
  const after = evolvePayment(state, found);
  const { transaction } = paymentSettled().data;
  assert.deepEqual(after, { ...state, settled: { ...found.data, stated: { transaction } }, missing: null });
});

test('a corrected transaction counts from then on; the first one stays known, until the chain has it after all', () => {
  const { transaction: stated } = paymentSettled().data;
  const [real, other] = [settlementCorrected().data.transaction, `0x${'9'.repeat(64)}`];
  for (const status of ['settled', 'refunding', 'refunded'] as const) {
    const { state } = givenPayment(...PATHS[status]);
    const transactionsAfter = (...transactions: readonly string[]) => {
      const after = transactions
        .map((transaction) => settlementCorrected({ transaction }))
        .reduce<Payment>(evolvePayment, state);
      return (
        'settled' in after && [
          after.settled.transaction,
          after.settled.stated?.transaction,
          isCorrected(after),
        ]
      );
    };
    assert.deepEqual(transactionsAfter(real), [real, stated, true]);
    assert.deepEqual(transactionsAfter(real, other), [other, stated, true]);
    assert.deepEqual(transactionsAfter(real, String(stated)), [stated, undefined, false]);
  }
  const nameless = givenPayment(
    paymentReserved(),
    paymentSettled({ transaction: null }),
    settlementCorrected(),
  );
  assert.ok(nameless.state.status === 'settled' && !isCorrected(nameless.state));
  assert.equal(nameless.state.settled.transaction, real);
});

test('the owner is who reserved or retried last; an unknown answer changes nothing in that', () => {
  const ownerAfter = (...events: readonly PaymentEvent[]) => {
    const { state } = givenPayment(paymentReserved({ owner: 'a' }), ...events);
    return 'owner' in state ? state.owner : null;
  };
  const retried = settlementRetried({ owner: 'b' });
  assert.equal(ownerAfter(), 'a');
  assert.equal(ownerAfter(settlementUnknown()), 'a');
  assert.equal(ownerAfter(settlementUnknown(), retried), 'b');
  assert.equal(ownerAfter(settlementUnknown(), retried, settlementUnknown()), 'b');
  assert.equal(ownerAfter(paymentReleased(), paymentReserved({ owner: 'c' })), 'c');
});

test('bound means reserved and not ended', () => {
  const bound = Object.values(PATHS)
    .map((path) => givenPayment(...path).state)
    .filter(isBound)
    .map(({ status }) => status);
  assert.deepEqual(bound, ['reserved', 'unknown', 'retried', 'settled', 'missing']);
});

const transaction = paymentSettled().data.transaction ?? '';
const refusal = { outcome: 'rejected', reason: 'insufficient_funds' } as const;
const open = { outcome: 'unknown', cause: 'pending', transaction } as const;
const INCONCLUSIVE: readonly Inconclusive[] = [refusal, open];

// ── what the chain says ─────────────────────────────────────────────────────────────────────────────────

for (const status of ['reserved', 'unknown', 'retried'] as const) {
  const { state } = givenPayment(...PATHS[status]);
  assert.ok(isBound(state));
  const validBefore = Number(state.reserved.validBefore);
  const says = (finding: Parameters<typeof reconcile>[0]) => reconcile(finding, state, at(5));

  test(`${status}, and the chain shows the transfer: settled`, () => {
    assert.deepEqual(says({ outcome: 'paid', transaction }), paymentSettled({ evidence: 'chain' }));
  });
  test(`${status}, and the chain shows a cancellation: rejected`, () => {
    assert.deepEqual(
      says({ outcome: 'cancelled' }),
      paymentRejected({ reason: 'authorization_cancelled', evidence: 'chain' }),
    );
  });
  test(`${status}, and unused on chain: rejected only later than validBefore + 60 s by the chain's clock`, () => {
    assert.equal(says({ outcome: 'unused', chainTimeSeconds: T0 / 1000 }), null);
    assert.equal(says({ outcome: 'unused', chainTimeSeconds: validBefore + 60 }), null);
    const expected = paymentRejected({ reason: 'unused_after_expiry', evidence: 'chain' });
    assert.deepEqual(says({ outcome: 'unused', chainTimeSeconds: validBefore + 61 }), expected);
  });
  test(`${status}, and its nonce was used by another authorization: rejected`, () => {
    assert.deepEqual(
      says({ outcome: 'spent_elsewhere' }),
      paymentRejected({ reason: 'authorization_spent_elsewhere', evidence: 'chain' }),
    );
  });
  test(`${status}, and the node does not answer: nothing is final`, () => {
    assert.equal(says({ outcome: 'unavailable' }), null);
  });

  const unused = { outcome: 'unused', chainTimeSeconds: validBefore } as const;
  const concluded = (answer: Inconclusive, finding: ChainFinding, first: boolean) =>
    concludeSettlement(answer, finding, state, { first, at: at(5) });

  test(`${status}, and whatever an inconclusive answer says: what the chain proves counts`, () => {
    for (const answer of INCONCLUSIVE) {
      for (const first of [true, false]) {
        for (const finding of [
          { outcome: 'paid', transaction },
          { outcome: 'cancelled' },
          { outcome: 'spent_elsewhere' },
          { outcome: 'unused', chainTimeSeconds: validBefore + 61 },
        ] as const) {
          assert.deepEqual(concluded(answer, finding, first), says(finding));
        }
        assert.equal(concluded(answer, { outcome: 'unavailable' }, first), null);
      }
    }
  });
  test(`${status}, and unused on chain: only a final refusal of the first and only call ends it`, () => {
    assert.deepEqual(concluded(refusal, unused, true), paymentRejected());
    assert.equal(concluded(refusal, unused, false), null);
    assert.equal(concluded(open, unused, true), null);
  });
  test(`${status}, and an inconclusive answer: recorded as unknown, with its code and its transaction`, () => {
    assert.deepEqual(
      settlementUnknownOf(state, open, at(5)),
      settlementUnknown({ cause: 'pending', transaction }),
    );
    assert.deepEqual(
      settlementUnknownOf(state, refusal, at(5)),
      settlementUnknown({ cause: 'insufficient_funds', transaction: null }),
    );
  });
}

test('the transaction that an answer named is kept until another answer names one', () => {
  const after = (...events: readonly PaymentEvent[]) => {
    const { state } = givenPayment(paymentReserved(), ...events);
    return 'transaction' in state ? state.transaction : undefined;
  };
  const named = settlementUnknown({ transaction: '0xa' });
  assert.equal(after(), null);
  assert.equal(after(named), '0xa');
  assert.equal(after(named, settlementRetried()), '0xa');
  assert.equal(after(named, settlementRetried(), settlementUnknown()), '0xa');
  assert.equal(after(named, settlementRetried(), settlementUnknown({ transaction: '0xb' })), '0xb');
  assert.equal(after(named, paymentReleased(), paymentReserved()), null);
});

test('a deferred payment is reserved by its own job, and by no other', () => {
  const { state } = givenPayment(paymentDeferred());
  assert.equal(evolvePayment(state, paymentReserved()).status, 'reserved');
  assert.equal(evolvePayment(state, paymentReserved({ jobId: OTHER_JOB_ID })), state);
});
