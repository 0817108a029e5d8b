// The first step of a refund, and how it is taken back.

import type { PaymentReserved } from '#src/domain/events/payment.ts';
import { event, type PaymentEvent } from '#src/domain/events.ts';
import {
  type BeginRefusal,
  beginRefund,
  cancelRefund,
  confirmRefund,
  type JobProgress,
  progressOf,
  refundable,
} from '#src/domain/payment/refund.ts';
import type { Payment } from '#src/domain/payment/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import type { Payments } from '#src/ports/payments.ts';
import { decide, JOB, type JournalDeps, load, PAYMENT, tryAppend } from '#src/usecases/process/stream.ts';
import { type CompleteRequest, confirmFacts, findClaimed } from './complete-refund.ts';

/** `id`: name of the payment's stream. `isNew` false: it had begun before. */
export type BegunRefund =
  | {
      readonly outcome: 'begun';
      readonly id: string;
      readonly payment: PaymentReserved;
      readonly isNew: boolean;
    }
  | { readonly outcome: 'refused'; readonly id: string; readonly reason: BeginRefusal | 'cancelled' }
  | Claimed;

/** Its money was sent with this transaction: the refund has to be completed. */
type Claimed = { readonly outcome: 'claimed'; readonly id: string; readonly transaction: string };

export type BeginOptions = {
  readonly includeServed: boolean;
  /** Why the operator is certain of the charge: recorded if the chain gives no usable answer. null: then it is refused. */
  readonly statement: string | null;
};

/**
 * Begins the refund of a payment whose transfer the chain shows now, in a block that counts. If its job starts at the same
 * moment, exactly one of the two wins: either the job reads the refund and sends nothing, or the refund is cancelled.
 * `includeServed`: also if its call was made.
 */
export async function beginPaymentRefund(
  deps: JournalDeps & Pick<Payments, 'lookUp'> & Pick<CompleteRequest, 'findTransfers'>,
  id: string,
  { includeServed, statement }: BeginOptions,
): Promise<BegunRefund> {
  for (;;) {
    const { answer } = await decide<Payment, PaymentEvent, BeginRefusal | 'begun' | 'begun_before'>(
      deps,
      PAYMENT,
      id,
      async ({ state }) => {
        const job = await progress(deps, state);
        const found = refundable(state, { job, includeServed });
        if (found.kind !== 'refundable') return { events: [], answer: found.kind };
        const { payment } = found;
        const { transaction } = payment.settled;
        const finding = await deps.lookUp(payment.reserved, { transaction });
        const isLookedAt = finding.outcome === 'paid' && payment.status === 'settled';
        const charge = isLookedAt ? await deps.findTransfers(finding.transaction) : null;
        const beginning = beginRefund(payment, { job, finding, charge, statement, at: isoNow(deps) });
        if (beginning.kind !== 'events') return { events: [], answer: beginning.kind };
        const { events } = beginning;
        return { events, answer: events.length > 0 ? 'begun' : 'begun_before' };
      },
    );
    if (answer !== 'begun' && answer !== 'begun_before') return { outcome: 'refused', id, reason: answer };
    const begun = await confirm(deps, id, answer === 'begun');
    if (begun !== null) return begun;
  }
}

/** How long a job that started at the same moment has to close without sending anything. */
const DECISION_MS = 5000;
const PAUSE_MS = 100;

/**
 * Reads the job after the refund has begun. Returns null if the refund has to begin again, also because another process
 * acted first.
 */
async function confirm(deps: JournalDeps, id: string, isNew: boolean): Promise<BegunRefund | null> {
  for (let waited = 0; ; waited += PAUSE_MS) {
    const view = await load(deps, PAYMENT, id);
    const { state } = view;
    if (state.status === 'refunded') return { outcome: 'refused', id, reason: 'already_refunded' };
    if (state.status !== 'refunding') return { outcome: 'refused', id, reason: 'cancelled' };
    const transaction = await claimOf(deps, id);
    if (transaction !== null) return { outcome: 'claimed', id, transaction };
    const facts = await confirmFacts(deps.log, view, state);
    const fate = confirmRefund(state, facts);
    if (fate === 'holds') return { outcome: 'begun', id, payment: state.reserved, isNew };
    if (fate === 'lost' || waited >= DECISION_MS) {
      const cancelled = cancelRefund(state, 'job_started', isoNow(deps));
      const events = cancelled.kind === 'events' ? cancelled.events : [];
      if ((await tryAppend(deps, PAYMENT, view, events)) === null) return null;
      // Closed without a request since it was read, which another command may have read: the refund begins again.
      if ((await progress(deps, state)) === 'interrupted') return null;
      return { outcome: 'refused', id, reason: facts.job === 'running' ? 'job_running' : 'served' };
    }
    await deps.clock.sleep(PAUSE_MS, deps.ending);
  }
}

async function progress({ log }: JournalDeps, payment: Payment): Promise<JobProgress> {
  if (payment.status === 'absent') return 'absent';
  return progressOf((await load({ log }, JOB, payment.reserved.jobId)).state);
}

export type Cancelled =
  | { readonly outcome: 'cancelled'; readonly id: string }
  | { readonly outcome: 'refused'; readonly id: string; readonly reason: 'not_begun' | 'already_refunded' }
  | Claimed;

/** Cancels a refund that has begun, so that the payment buys its call again, unless a transaction is claimed for it. */
export async function cancelPaymentRefund(deps: JournalDeps, id: string): Promise<Cancelled> {
  const { view, answer } = await decide<Payment, PaymentEvent, Cancelled | Refunding>(
    deps,
    PAYMENT,
    id,
    async ({ state }) => {
      const cancelled = cancelRefund(state, 'operator', isoNow(deps));
      if (cancelled.kind !== 'events')
        return { events: [], answer: { outcome: 'refused', id, reason: cancelled.kind } };
      const transaction = await claimOf(deps, id);
      if (transaction !== null) return { events: [], answer: { outcome: 'claimed', id, transaction } };
      if (state.status !== 'refunding') throw new Error('a refund that is cancelled had begun');
      return { events: cancelled.events, answer: state };
    },
  );
  if ('outcome' in answer) return answer;
  // A claim that was stored meanwhile has read the refund as begun.
  const claimed = await claimOf(deps, id);
  if (claimed === null) return { outcome: 'cancelled', id };
  const { jobId, served, statement } = answer.begun;
  const begun = event('RefundBegun', { jobId, served, statement, begunAt: isoNow(deps) });
  // If another process acted first, it has recorded the refund, or a call: completing the refund decides.
  await tryAppend(deps, PAYMENT, view, [begun]);
  return { outcome: 'claimed', id, transaction: claimed };
}

type Refunding = Extract<Payment, { status: 'refunding' }>;

const claimOf = async ({ log }: JournalDeps, id: string): Promise<string | null> =>
  (await findClaimed(log, new Set([id]))).get(id) ?? null;
