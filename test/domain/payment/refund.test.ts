// Refunds: given a payment or claims, when an operator begins, cancels or completes one, then this is recorded.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DomainEvent, EventOf, PaymentEvent } from '#src/domain/events.ts';
import {
  type Begun,
  beginRefund,
  type Claiming,
  type ClaimRequest,
  cancelRefund,
  claimTransfers,
  confirmRefund,
  evolveClaims,
  type FoundTransfers,
  type JobProgress,
  NO_CLAIMS,
  type RefundClaims,
  type RefundingPayment,
  recordRefund,
  refundable,
  type Transfer,
} from '#src/domain/payment/refund.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { givenPayment } from '#test/support/given/given.ts';
import {
  at,
  hex,
  JOB_ID,
  PAYMENT_STREAM,
  paymentMissing,
  paymentRefunded,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  refundCancelled,
  refundClaimed,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';

const charged = [paymentReserved(), paymentSettled()];
const AT = at(80);
const events = <E extends readonly DomainEvent[]>(...events: E) => ({ kind: 'events', events }) as const;

describe('begin', () => {
  const paid: ChainFinding = { outcome: 'paid', transaction: paymentSettled().data.transaction ?? '' };
  const begin = (
    events: readonly PaymentEvent[],
    job: JobProgress,
    {
      includeServed = false,
      finding = paid,
      charge = 'found',
      statement = null,
    }: {
      includeServed?: boolean;
      finding?: ChainFinding;
      charge?: FoundTransfers['outcome'];
      statement?: string | null;
    } = {},
  ) => {
    const found = refundable(givenPayment(...events).state, { job, includeServed });
    if (found.kind !== 'refundable') return found;
    const looked = finding.outcome === 'paid' ? { outcome: charge } : null;
    return beginRefund(found.payment, { job, finding, charge: looked, statement, at: AT });
  };

  const cases: readonly [
    given: string,
    events: readonly PaymentEvent[],
    job: JobProgress,
    then: ReturnType<typeof beginRefund>,
  ][] = [
    ['a charge whose call never started', charged, 'absent', events(refundBegun())],
    ['a charge whose call was interrupted', charged, 'interrupted', events(refundBegun())],
    ['a charge whose call runs', charged, 'running', { kind: 'job_running' }],
    ['a charge whose call was made', charged, 'executed', { kind: 'served' }],
    ['a refund that has begun', [...charged, refundBegun()], 'absent', events()],
    [
      'a refund that has begun of a charge that the chain does not have',
      [...charged, refundBegun(), paymentMissing()],
      'absent',
      { kind: 'missing' },
    ],
    ['a cancelled refund', [...charged, refundBegun(), refundCancelled()], 'absent', events(refundBegun())],
    [
      'a refunded charge',
      [...charged, refundBegun(), paymentRefunded()],
      'absent',
      { kind: 'already_refunded' },
    ],
    ['a charge that the chain does not have', [...charged, paymentMissing()], 'absent', { kind: 'missing' }],
    ['no payment', [], 'absent', { kind: 'not_found' }],
    ['a reservation', [paymentReserved()], 'absent', { kind: 'unconfirmed' }],
    ['an unknown settlement', [paymentReserved(), settlementUnknown()], 'absent', { kind: 'unconfirmed' }],
    ['a rejected payment', [paymentReserved(), paymentRejected()], 'absent', { kind: 'not_charged' }],
    ['a released payment', [paymentReserved(), paymentReleased()], 'absent', { kind: 'not_charged' }],
  ];
  for (const [given, recorded, job, then] of cases) {
    const words = then.kind !== 'events' ? then.kind : then.events.length === 0 ? 'nothing more' : 'begun';
    test(`${given}: ${words}`, () => assert.deepEqual(begin(recorded, job), then));
  }

  test('a charge whose call was made, on demand: begun, and recorded so', () => {
    assert.deepEqual(
      begin(charged, 'executed', { includeServed: true }),
      events(refundBegun({ served: true })),
    );
  });

  const ownPayment = [paymentReserved({ payer: paymentReserved().data.payTo }), paymentSettled()];
  test('a charge that its own payee paid: refused, since no money came in', () => {
    assert.deepEqual(begin(ownPayment, 'absent'), { kind: 'self_paid' });
    assert.deepEqual(begin([...ownPayment, refundBegun()], 'absent'), { kind: 'self_paid' });
  });

  test('a charge without a transfer on the chain now: refused, also if its refund has begun, and whatever the operator states', () => {
    const others: readonly ChainFinding[] = [
      { outcome: 'unused', chainTimeSeconds: T0 / 1000 },
      { outcome: 'cancelled' },
      { outcome: 'spent_elsewhere' },
    ];
    for (const finding of others)
      for (const recorded of [charged, [...charged, refundBegun()]])
        assert.deepEqual(begin(recorded, 'absent', { finding, statement: 'sure' }), {
          kind: 'not_on_chain',
        });
  });

  test('the chain has no usable answer: refused, unless the operator states a reason, which is recorded', () => {
    const finding = { outcome: 'unavailable' } as const;
    assert.deepEqual(begin(charged, 'absent', { finding }), { kind: 'chain_unavailable' });
    const statement = 'A block explorer shows it.';
    assert.deepEqual(begin(charged, 'absent', { finding, statement }), events(refundBegun({ statement })));
    assert.deepEqual(begin(charged, 'absent', { statement }), events(refundBegun()));
    assert.deepEqual(begin([...charged, refundBegun()], 'absent', { finding }), events());
  });

  test('the block of the charge does not count yet, or not any more: refused, whatever the operator states', () => {
    for (const [charge, kind] of [
      ['unconfirmed', 'not_final'],
      ['missing', 'not_on_chain'],
      ['failed', 'not_on_chain'],
    ] as const) {
      assert.deepEqual(begin(charged, 'absent', { charge, statement: 'sure' }), { kind });
      assert.deepEqual(begin([...charged, refundBegun()], 'absent', { charge }), events());
    }
    const statement = 'A block explorer shows it.';
    for (const charge of ['unavailable', 'no_safe_block'] as const) {
      assert.deepEqual(begin(charged, 'absent', { charge }), { kind: 'chain_unavailable' });
      assert.deepEqual(begin(charged, 'absent', { charge, statement }), events(refundBegun({ statement })));
    }
  });

  test('it holds by the job as read afterwards: what did not start by then sends nothing', () => {
    for (const [job, startedBefore, fate] of [
      ['absent', false, 'holds'],
      ['interrupted', true, 'holds'],
      ['running', true, 'undecided'],
      ['running', false, 'holds'],
      ['executed', true, 'lost'],
      ['executed', false, 'lost'],
    ] as const)
      assert.equal(confirmRefund(refunding().payment, { job, startedBefore }), fate);
    const served = refunding({ begun: { served: true } }).payment;
    assert.equal(confirmRefund(served, { job: 'executed', startedBefore: true }), 'holds');
  });
});

test('cancel: a refund that has begun, and no other', () => {
  const cancel = (...events: readonly PaymentEvent[]) =>
    cancelRefund(givenPayment(...events).state, 'operator', at(90));
  assert.deepEqual(cancel(...charged, refundBegun()), events(refundCancelled()));
  for (const recorded of [charged, [], [...charged, refundBegun(), refundCancelled()]])
    assert.deepEqual(cancel(...recorded), { kind: 'not_begun' });
  const refunded = cancel(...charged, refundBegun(), paymentRefunded());
  assert.deepEqual(refunded, { kind: 'already_refunded' });
});

// ── claims ──────────────────────────────────────────────────────────────────────────────────────────────

const { payTo: PAYEE, payer: PAYER, network, asset } = paymentReserved().data;
const ASSET = asset.toLowerCase();
const OTHER_PAYER = `0x${'3'.repeat(40)}`;
const WALLET = `0x${'4'.repeat(40)}`;
const TX = paymentRefunded().data.transaction;
const RESERVED_SECONDS = Math.floor(T0 / 1000);

type Changes = {
  readonly id?: string;
  readonly claimedBy?: string;
  readonly holds?: boolean;
  readonly reserved?: Partial<EventOf<'PaymentReserved'>['data']>;
  readonly settled?: Partial<EventOf<'PaymentSettled'>['data']>;
  readonly begun?: Partial<EventOf<'RefundBegun'>['data']>;
};

function refunding({
  id = PAYMENT_STREAM,
  claimedBy,
  holds = true,
  reserved,
  settled,
  begun,
}: Changes = {}): Begun {
  const events = [paymentReserved(reserved), paymentSettled(settled), refundBegun(begun)];
  const payment = givenPayment(...events).state as RefundingPayment;
  return { id, payment, claimedBy: claimedBy ?? null, holds, chargedAtSeconds: null };
}
const numbered = (n: number, reserved: Changes['reserved'] = {}) =>
  refunding({ id: stream(n), reserved: { jobId: `job_${n}`, ...reserved } });
const stream = (n: number) => `payment-${hex(String(n))}`;
const transfer = (changes: Partial<Transfer> = {}): Transfer => ({
  asset: ASSET,
  sender: PAYEE,
  recipient: PAYER,
  amount: 3000n,
  ...changes,
});

/** When a transaction with these transfers is completed. */
function complete(
  transfers: readonly Transfer[],
  begun: readonly Begun[],
  changes: Partial<ClaimRequest> & { readonly claims?: RefundClaims; readonly atSeconds?: number } = {},
): Claiming {
  const { claims = NO_CLAIMS, atSeconds = RESERVED_SECONDS, ...more } = changes;
  return claimTransfers(claims, {
    transaction: TX,
    found: { outcome: 'found', network, atSeconds, transfers },
    begun,
    refundFrom: null,
    released: [],
    max: 100,
    at: at(95),
    ...more,
  });
}
/** What is claimed for each payer, and why the others are not. */
const essence = ({ event, uncovered }: Claiming) => ({
  claimed:
    event?.data.transfers.map(({ payer, refunds }) => [payer, refunds.map(({ payment }) => payment)]) ?? [],
  uncovered: uncovered.map(({ begun, reason }) => [begun.id, reason]),
});
const claimed = (...refunds: readonly string[]) => ({ claimed: [[PAYER, refunds]], uncovered: [] });
const not = (reason: string) => ({ claimed: [], uncovered: [[PAYMENT_STREAM, reason]] });

describe('given refunds that have begun, when a transaction is completed, then it claims', () => {
  test('the payment that its transfer covers, with the sender', () => {
    const sent = refundClaimed();
    const expected = { ...sent.data.transfers[0], asset: ASSET };
    assert.deepEqual(complete([transfer()], [refunding()]), {
      event: { ...sent, data: { ...sent.data, transfers: [expected] } },
      uncovered: [],
    });
  });

  test('several payers, and several payments of one', () => {
    const begun = [numbered(1), numbered(2, { payer: OTHER_PAYER }), numbered(3)];
    const transfers = [transfer({ amount: 6000n }), transfer({ recipient: OTHER_PAYER })];
    assert.deepEqual(essence(complete(transfers, begun)), {
      claimed: [
        [PAYER, [stream(1), stream(3)]],
        [OTHER_PAYER, [stream(2)]],
      ],
      uncovered: [],
    });
  });

  test('the oldest first, and as many as the sum of the transfers to their payer covers', () => {
    const begun = [numbered(1), numbered(2), numbered(3)];
    const transfers = [transfer({ amount: 1000n }), transfer({ amount: 5999n })];
    assert.deepEqual(essence(complete(transfers, begun)), {
      claimed: [[PAYER, [stream(1), stream(2)]]],
      uncovered: [[stream(3), 'transfer_used']],
    });
  });

  test('a smaller payment where a larger one is not covered', () => {
    const begun = [numbered(1, { amount: '9000' }), numbered(2)];
    assert.deepEqual(essence(complete([transfer()], begun)), {
      claimed: [[PAYER, [stream(2)]]],
      uncovered: [[stream(1), 'transfer_too_small']],
    });
  });

  test('nothing for a payer that it does not pay', () => {
    const begun = [numbered(1, { payer: OTHER_PAYER })];
    assert.deepEqual(complete([transfer()], begun), { event: null, uncovered: [] });
  });

  test('what came from the wallet for refunds; not what both wallets sent together', () => {
    const fromWallet = transfer({ sender: WALLET });
    const allowed = complete([fromWallet], [refunding()], { refundFrom: WALLET });
    assert.deepEqual(essence(allowed), claimed(PAYMENT_STREAM));
    assert.equal(allowed.event?.data.transfers[0]?.sender, WALLET);
    const halves = [transfer({ amount: 1500n }), transfer({ sender: WALLET, amount: 1500n })];
    assert.deepEqual(
      essence(complete(halves, [refunding()], { refundFrom: WALLET })),
      not('transfer_too_small'),
    );
  });

  test('the payee in whatever spelling of its address', () => {
    const mixed = {
      payTo: PAYEE.toUpperCase().replace('0X', '0x'),
      payer: PAYER.toUpperCase().replace('0X', '0x'),
    };
    assert.deepEqual(
      essence(complete([transfer()], [refunding({ reserved: mixed })])),
      claimed(PAYMENT_STREAM),
    );
  });

  const refusals: readonly [string, readonly Transfer[], Changes, number?][] = [
    ['transfer_too_small', [transfer({ amount: 2999n })], {}],
    ['wrong_asset', [transfer({ asset: `0x${'9'.repeat(40)}` })], {}],
    ['wrong_sender', [transfer({ sender: WALLET })], {}],
    ['transfer_before_charge', [transfer()], {}, RESERVED_SECONDS - 1],
    ['charge_transaction', [transfer()], { settled: { transaction: TX } }],
    ['claimed_by_other', [transfer()], { claimedBy: `0x${hex('9')}` }],
    ['not_confirmed', [transfer()], { holds: false }],
  ];
  for (const [reason, transfers, changes, atSeconds] of refusals)
    test(`nothing: ${reason}`, () => {
      const options = atSeconds === undefined ? {} : { atSeconds };
      assert.deepEqual(essence(complete(transfers, [refunding(changes)], options)), not(reason));
    });

  test('nothing for a transfer of a wallet to itself', () => {
    const own = transfer({ sender: PAYER });
    assert.deepEqual(complete([own], [refunding({ reserved: { payTo: PAYER } })]), {
      event: null,
      uncovered: [],
    });
  });
});

describe('given earlier claims of the transaction', () => {
  const claims = evolveClaims(NO_CLAIMS, refundClaimed());

  test('what they have claimed is not claimed again', () => {
    assert.deepEqual(complete([transfer()], [refunding()], { claims }), { event: null, uncovered: [] });
    const next = complete([transfer()], [numbered(2)], { claims });
    assert.deepEqual(essence(next), { claimed: [], uncovered: [[stream(2), 'transfer_used']] });
  });

  test('what they have left is claimed for a refund that has begun since', () => {
    const next = complete([transfer({ amount: 6000n })], [numbered(2)], { claims });
    assert.deepEqual(essence(next), claimed(stream(2)));
  });

  test('what another transaction has refunded is released, and claimed for another refund', () => {
    const next = complete([transfer()], [numbered(2)], { claims, released: [PAYMENT_STREAM] });
    assert.deepEqual(next.event?.data.released, [PAYMENT_STREAM]);
    assert.deepEqual(essence(next), claimed(stream(2)));
    assert.ok(next.event !== null);
    const after = evolveClaims(claims, next.event);
    assert.deepEqual(
      after.allocations.map(({ payment }) => payment),
      [stream(2)],
    );
  });

  test('one event claims a limited number of refunds, and the next one continues', () => {
    const begun = [numbered(1), numbered(2), numbered(3)];
    const transfers = [transfer({ amount: 9000n })];
    const first = complete(transfers, begun, { max: 2 });
    assert.deepEqual(essence(first), claimed(stream(1), stream(2)));
    assert.ok(first.event !== null);
    const second = complete(transfers, begun, { max: 2, claims: evolveClaims(NO_CLAIMS, first.event) });
    assert.deepEqual(essence(second), claimed(stream(3)));
  });
});

describe('given a claim, when it is recorded, then', () => {
  const record = (...events: readonly PaymentEvent[]) =>
    recordRefund(
      givenPayment(...events).state,
      { sender: PAYEE },
      { transaction: TX, served: false, at: at(100) },
    );

  test('the payment is refunded in full, with transaction and sender', () => {
    assert.deepEqual(record(...charged, refundBegun()), events(paymentRefunded()));
  });

  test('a refund that was cancelled meanwhile begins again: the money has moved', () => {
    const begun = refundBegun({ begunAt: at(100) });
    for (const recorded of [
      [...charged, refundBegun(), refundCancelled()],
      [...charged, refundBegun(), paymentMissing(), refundCancelled()],
    ])
      assert.deepEqual(record(...recorded), events(begun, paymentRefunded()));
  });

  test('nothing more if it is recorded, and nothing if another transaction refunded it', () => {
    assert.deepEqual(record(...charged, refundBegun(), paymentRefunded()), events());
    const other = paymentRefunded({ transaction: `0x${hex('f')}` });
    assert.deepEqual(record(...charged, refundBegun(), other), { kind: 'elsewhere' });
    assert.deepEqual(record(paymentReserved(), paymentRejected()), { kind: 'elsewhere' });
  });
});

test('the sample claim is of the sample payment', () => {
  const [allocation] = evolveClaims(NO_CLAIMS, refundClaimed()).allocations;
  assert.deepEqual([allocation?.payment, allocation?.payer], [PAYMENT_STREAM, PAYER]);
  assert.equal(refundBegun().data.jobId, JOB_ID);
});
