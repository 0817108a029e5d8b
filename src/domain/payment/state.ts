// A payment: what its stream says of one authorization, and what may happen to it next (x402, scheme exact).

import type {
  PaymentDeferred,
  PaymentMissing,
  PaymentRejected,
  PaymentReserved,
  PaymentSettled,
  SettlementCorrected,
} from '../events/payment.ts';
import type { PaymentRefunded, RefundBegun } from '../events/refund.ts';
import { type EventOf, event, type PaymentEvent } from '../events.ts';
import type { PaymentReason } from './reasons.ts';

/** `transaction`: as the chain has it, once it was compared. */
export type Charge = PaymentSettled & {
  /** What was recorded first, if the chain has another transaction: receipts that were signed before state it. */
  readonly stated: Pick<PaymentSettled, 'transaction'> | null;
};

export type Payment =
  /** Not reserved so far. `pledge`: it is for runs of one schedule and buys nothing else; null: it is for any call. */
  | { readonly status: 'absent'; readonly pledge: PaymentDeferred | null }
  /** A settle call may have been made, which a crash hid. */
  | {
      readonly status: 'reserved' | 'unknown' | 'retried';
      readonly reserved: PaymentReserved;
      /** The process that reserved or retried last. */
      readonly owner: string;
      /** The hash in the facilitator's last answer that contained one, not verified; null: none did. */
      readonly transaction: string | null;
    }
  | { readonly status: 'settled'; readonly reserved: PaymentReserved; readonly settled: Charge }
  /** Charged, and the chain has no transfer of it: it buys nothing further until the chain shows one. */
  | {
      readonly status: 'missing';
      readonly reserved: PaymentReserved;
      readonly settled: Charge;
      readonly missing: PaymentMissing;
    }
  /** Charged, and its refund has begun: it buys nothing, unless the refund is cancelled. */
  | {
      readonly status: 'refunding';
      readonly reserved: PaymentReserved;
      readonly settled: Charge;
      readonly begun: RefundBegun;
      /** The chain has no transfer of the charge; null: it has, or this was not found out. */
      readonly missing: PaymentMissing | null;
    }
  /** Charged and returned: it buys nothing any more, and its authorization is used. */
  | {
      readonly status: 'refunded';
      readonly reserved: PaymentReserved;
      readonly settled: Charge;
      readonly refunded: PaymentRefunded;
      readonly missing: PaymentMissing | null;
    }
  /** Ended without money moving: the same authorization may be reserved again. `reason`: a code. */
  | {
      readonly status: 'rejected' | 'released';
      readonly reserved: PaymentReserved;
      readonly reason: string;
    };

/** Reserved for a job and not ended: the job is the only one that this payment may ever buy. */
export type BoundPayment = Exclude<Payment, ReturnedPayment | { status: 'absent' | 'rejected' | 'released' }>;

/** Its refund has begun or is recorded: it buys nothing. */
export type ReturnedPayment = Extract<Payment, { status: 'refunding' | 'refunded' }>;

export const absentPayment: Payment = { status: 'absent', pledge: null };

export const isBound = (payment: Payment): payment is BoundPayment =>
  !['absent', 'refunding', 'refunded', 'rejected', 'released'].includes(payment.status);

/** Its money moved before this log has reserved it for a run: the log may lack events, so that it executes nothing. */
export const isUsedBefore = (payment: Payment): boolean =>
  payment.status === 'settled' && payment.reserved.owner === UNRESERVED;

export const isReturned = (payment: Payment): payment is ReturnedPayment =>
  payment.status === 'refunding' || payment.status === 'refunded';

/** Charged in the books, and the chain has no transfer of it. */
export const isMissing = (payment: Payment): boolean => 'missing' in payment && payment.missing !== null;

/** A hash was recorded for the charge that the chain does not have for it. */
export const isCorrected = (payment: Payment): boolean =>
  'settled' in payment && (payment.settled.stated?.transaction ?? null) !== null;

/** The wallet that was paid has paid: no money came in, so that it is in no sum, and nothing can be returned. */
export const isSelfPaid = ({ payer, payTo }: Pick<PaymentReserved, 'payer' | 'payTo'>): boolean =>
  payer.toLowerCase() === payTo.toLowerCase();

export function evolvePayment(payment: Payment, event: PaymentEvent): Payment {
  if (isReturned(payment)) return evolveReturned(payment, event);
  if (event.type === 'PaymentDeferred') {
    const isFree = payment.status === 'absent' ? payment.pledge === null : !isBound(payment);
    return isFree ? { status: 'absent', pledge: event.data } : payment;
  }
  if (event.type === 'PaymentReserved') {
    if (isBound(payment)) return payment;
    // Only the run that it is pledged to.
    if (payment.status === 'absent' && payment.pledge !== null && payment.pledge.jobId !== event.data.jobId)
      return payment;
    return { status: 'reserved', reserved: event.data, owner: event.data.owner, transaction: null };
  }
  if (payment.status === 'absent') return evolvePledged(payment, event);
  if (payment.status === 'settled') return evolveSettled(payment, event);
  const { reserved } = payment;
  // The money of this authorization is in, whatever was concluded before and whichever job's call moved it.
  if (event.type === 'PaymentSettled') {
    const before = payment.status === 'missing' ? payment.settled : null;
    return { status: 'settled', reserved, settled: chargeOf(event.data, before) };
  }
  if (!isBound(payment)) return payment;
  // Nothing was sent for it, and it can never be paid: it is over.
  if (event.type === 'PaymentRejected') return { status: 'rejected', reserved, reason: event.data.reason };
  if (event.type === 'PaymentReleased' && payment.status !== 'missing')
    return { status: 'released', reserved, reason: event.data.reason };
  if (payment.status === 'missing') {
    const { settled, missing } = payment;
    return event.type === 'RefundBegun'
      ? { status: 'refunding', reserved, settled, begun: event.data, missing }
      : payment;
  }
  switch (event.type) {
    case 'RefundBegun':
    case 'RefundCancelled':
    case 'PaymentRefunded':
    case 'PaymentMissing':
    case 'SettlementCorrected':
      return payment;
    case 'PaymentReleased':
      return payment;
    case 'SettlementUnknown': {
      const { owner, transaction } = payment;
      return { status: 'unknown', reserved, owner, transaction: event.data.transaction ?? transaction };
    }
    case 'SettlementRetried':
      return { status: 'retried', reserved, owner: event.data.owner, transaction: payment.transaction };
    default:
      return event satisfies never;
  }
}

/** A payment for runs that no call has reserved: it ends with its last run, or its money moves without us. */
function evolvePledged(payment: Extract<Payment, { status: 'absent' }>, event: PaymentEvent): Payment {
  if (payment.pledge === null) return payment;
  const reserved = reservationOf(payment.pledge);
  if (event.type === 'PaymentSettled')
    return { status: 'settled', reserved, settled: chargeOf(event.data, null) };
  if (event.type !== 'PaymentReleased' && event.type !== 'PaymentRejected') return payment;
  const status = event.type === 'PaymentReleased' ? 'released' : 'rejected';
  return { status, reserved, reason: event.data.reason };
}

const UNRESERVED = '';

/** What was reserved, or would be by the run that the payment is pledged to; null: neither. */
export const reservationIn = (payment: Payment): PaymentReserved | null =>
  payment.status === 'absent' ? payment.pledge && reservationOf(payment.pledge) : payment.reserved;

function reservationOf(pledge: PaymentDeferred): PaymentReserved {
  const { scheduleId: _, run: __, dueAt: ___, deferredAt, ...authorized } = pledge;
  return { ...authorized, v: 1, owner: UNRESERVED, reservedAt: deferredAt };
}

/** What one authorization moves, to whom and until when. `payloadHash` null: every signature counts. */
export type Authorized = Pick<PaymentReserved, 'amount' | 'payTo' | 'validBefore'> & {
  readonly payloadHash: string | null;
};

/** Whether this is the authorization that was recorded: another one may have the same nonce. */
export const isRecorded = (authorized: Authorized, recorded: PaymentReserved | PaymentDeferred): boolean =>
  authorized.amount === recorded.amount &&
  authorized.payTo === recorded.payTo &&
  authorized.validBefore === recorded.validBefore &&
  (authorized.payloadHash === null || authorized.payloadHash === recorded.payloadHash);

function evolveSettled(payment: Extract<Payment, { status: 'settled' }>, event: PaymentEvent): Payment {
  switch (event.type) {
    case 'PaymentMissing':
      return { ...payment, status: 'missing', missing: event.data };
    case 'SettlementCorrected':
      return correct(payment, event.data);
    case 'RefundBegun':
      return { ...payment, status: 'refunding', begun: event.data, missing: null };
    case 'PaymentRefunded':
      // Version 1 recorded a refund in one step, without its sender.
      return event.data.sender === null
        ? { ...payment, status: 'refunded', refunded: event.data, missing: null }
        : payment;
    default:
      return payment;
  }
}

function evolveReturned(payment: ReturnedPayment, event: PaymentEvent): Payment {
  const { reserved, settled, missing } = payment;
  // The chain may show the charge, or lose it, at any later time.
  if (event.type === 'PaymentMissing' && missing === null) return { ...payment, missing: event.data };
  if (event.type === 'PaymentSettled' && missing !== null)
    return { ...payment, settled: chargeOf(event.data, settled), missing: null };
  if (event.type === 'SettlementCorrected' && missing === null) return correct(payment, event.data);
  if (payment.status === 'refunded') return payment;
  if (event.type === 'PaymentRefunded')
    return { status: 'refunded', reserved, settled, refunded: event.data, missing };
  if (event.type !== 'RefundCancelled') return payment;
  return missing === null
    ? { status: 'settled', reserved, settled }
    : { status: 'missing', reserved, settled, missing };
}

/** `before`: what was recorded of the charge until now. */
function chargeOf(settled: PaymentSettled, before: Charge | null): Charge {
  const first = before === null ? null : (before.stated ?? { transaction: before.transaction });
  return { ...settled, stated: first?.transaction === settled.transaction ? null : first };
}

/** The same payment if it has this transaction. */
function correct<P extends Extract<Payment, { readonly settled: Charge }>>(
  payment: P,
  { transaction }: SettlementCorrected,
): P {
  const { settled } = payment;
  if (settled.transaction === transaction) return payment;
  return { ...payment, settled: chargeOf({ ...settled, transaction }, settled) };
}

/** A fact that ends a payment's settlement. */
export type SettleEnd = EventOf<'PaymentSettled' | 'PaymentRejected'>;

/** `statement`: of the operator. `at`: RFC 3339. */
export function paymentSettled(
  { reserved: { jobId } }: Pick<BoundPayment, 'reserved'>,
  transaction: string | null,
  evidence: PaymentSettled['evidence'],
  at: string,
  statement: string | null = null,
): EventOf<'PaymentSettled'> {
  return event('PaymentSettled', { jobId, transaction, evidence, settledAt: at, statement });
}

/** `reason`: a code. `statement`: of the operator. `at`: RFC 3339. */
export function paymentRejected(
  { reserved: { jobId } }: Pick<BoundPayment, 'reserved'>,
  reason: string,
  evidence: PaymentRejected['evidence'],
  at: string,
  statement: string | null = null,
): EventOf<'PaymentRejected'> {
  return event('PaymentRejected', { jobId, reason, evidence, rejectedAt: at, statement });
}

/** What the chain says of an authorization. */
export type ChainFinding =
  /** Used, and the money of this authorization came to our payee. */
  | { readonly outcome: 'paid'; readonly transaction: string }
  | { readonly outcome: 'cancelled' }
  /** Its nonce was used by another authorization of the payer: none of it came to us, and none ever will. */
  | { readonly outcome: 'spent_elsewhere' }
  | { readonly outcome: 'unused'; readonly chainTimeSeconds: number }
  /** It was asked and gave no usable answer. */
  | { readonly outcome: 'unavailable' };

/** Seconds after `validBefore` from which an unused authorization surely stays unused. */
const EXPIRY_MARGIN_SECONDS = 60;

/** Unix time in seconds, the first at which an authorization that is still unused can never be used. */
export const surelyOverAt = ({ validBefore }: Pick<PaymentReserved, 'validBefore'>): number =>
  Number(validBefore) + EXPIRY_MARGIN_SECONDS + 1;

/** Whether an authorization that was not used by `atSeconds` (Unix time) never will be. */
export const isSurelyOver = (payment: Pick<PaymentReserved, 'validBefore'>, atSeconds: number): boolean =>
  atSeconds >= surelyOverAt(payment);

/** The fact that the chain proves of a payment of unknown fate; null: none yet. */
export function reconcile(
  finding: ChainFinding,
  payment: Pick<BoundPayment, 'reserved'>,
  at: string,
): SettleEnd | null {
  const rejected = (reason: PaymentReason) => paymentRejected(payment, reason, 'chain', at);
  switch (finding.outcome) {
    case 'paid':
      return paymentSettled(payment, finding.transaction, 'chain', at);
    case 'cancelled':
      return rejected('authorization_cancelled');
    case 'unused':
      return isSurelyOver(payment.reserved, finding.chainTimeSeconds)
        ? rejected('unused_after_expiry')
        : null;
    case 'spent_elsewhere':
      return rejected('authorization_spent_elsewhere');
    case 'unavailable':
      return null;
    default:
      return finding satisfies never;
  }
}
