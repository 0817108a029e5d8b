// Whether anything is left for an operator to do, and what kind of sums is wrong: the exit codes of `relay payments`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chainAccount } from '#src/domain/events/payment.ts';
import { type DomainEvent, STREAM } from '#src/domain/events.ts';
import { readLedger } from '#src/usecases/payments/read-ledger.ts';
import { contradictsItself, isWorkLeft } from '#src/usecases/payments/sum-payments.ts';
import {
  chainReconciled,
  JOB_ID,
  jobCompleted,
  jobStarted,
  PAYMENT_STREAM,
  paymentMissing,
  paymentRejected,
  paymentReserved,
  paymentSettled,
  refundBegun,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';
import { given, shared } from '#test/support/world/fakes-world.ts';

const { scheme, network, asset, amount, payTo, payer, payloadHash } = paymentReserved().data;
const { transaction } = paymentSettled().data;
const PAYMENT = { scheme, network, asset, amount, payTo, payer, transaction, payloadHash };
const settled = [paymentReserved(), paymentSettled()];
const started = (payment = PAYMENT) => jobStarted({ mode: 'x402', payment, paymentStream: PAYMENT_STREAM });
const served = [started(), jobCompleted()];
const interrupted = [started(), jobCompleted({ status: 'failed', errorCategory: 'interrupted_unknown' })];
const stranger = { transaction, sender: payer, block: 1_002, amount: '7', transfers: 1 };

type Case = {
  readonly payment?: readonly DomainEvent[];
  readonly job?: readonly DomainEvent[];
  readonly chain?: readonly DomainEvent[];
  readonly afterMs?: number;
};

async function judged({ payment = [], job = [], chain = [], afterMs = 3_600_000 }: Case) {
  const it = shared();
  const streams = [
    [PAYMENT_STREAM, payment],
    [`job-${JOB_ID}`, job],
    [STREAM.chain(chainAccount(chainReconciled().data)), chain],
  ] as const;
  for (const [stream, events] of streams) if (events.length > 0) await given(it, stream, ...events);
  const ledger = await readLedger(it.log);
  return [isWorkLeft(ledger, T0 + afterMs), contradictsItself(ledger)];
}

const CASES: readonly (readonly [title: string, Case, isWorkLeft: boolean, contradicts?: boolean])[] = [
  ['no payment', {}, false],
  ['served', { payment: settled, job: served }, false],
  ['served, and on the chain', { payment: settled, job: served, chain: [chainReconciled()] }, false],
  ['rejected', { payment: [paymentReserved(), paymentRejected()] }, false],
  ['settled a moment ago', { payment: settled, afterMs: 1000 }, false],
  ['a call that runs', { payment: settled, job: [started()] }, false],
  ['settled, and never started', { payment: settled }, true],
  ['interrupted', { payment: settled, job: interrupted }, true],
  ['a refund that has begun', { payment: [...settled, refundBegun()] }, true],
  ['unknown', { payment: [paymentReserved(), settlementUnknown()] }, true],
  ['missing', { payment: [...settled, paymentMissing()], job: served }, true],
  [
    'a transfer without a payment',
    { chain: [chainReconciled({ received: '7', confirmed: [], unattributed: [stranger] })] },
    false,
  ],
  [
    'the chain has another sum',
    { payment: settled, job: served, chain: [chainReconciled({ received: '2999' })] },
    true,
  ],
  [
    'served for less than was charged',
    { payment: settled, job: [started({ ...PAYMENT, amount: '1' }), jobCompleted()] },
    true,
    true,
  ],
];
for (const [title, it, left, contradicts = false] of CASES) {
  test(`${title}: ${left ? 'something' : 'nothing'} is left to do${contradicts ? ', and the books contradict themselves' : ''}`, async () => {
    assert.deepEqual(await judged(it), [left, contradicts]);
  });
}
