// A payment: what its stream says of one authorization, and what may happen to it next (x402, scheme exact).
import type { EventOf, PaymentEvent } from '../events.ts';
import type { PaymentMissing, PaymentReserved, PaymentSettled } from './events.ts';
import type { PaymentRefunded, RefundBegun } from './refund-events.ts';

export type Payment =
  | { readonly status: 'absent' }
  /** A settle call may have been made, which a crash hid. `owner`: the process that reserved or retried last. */
  | {
      readonly status: 'reserved' | 'unknown' | 'retried';
      readonly reserved: PaymentReserved;
      readonly owner: string;
    }
  | { readonly status: 'settled'; readonly reserved: PaymentReserved; readonly settled: PaymentSettled }
  /** Charged, and the chain has no transfer of it: it buys nothing further until the chain shows one. */
  | {
      readonly status: 'missing';
      readonly reserved: PaymentReserved;
      readonly settled: PaymentSettled;
      readonly missing: PaymentMissing;
    }
  /** Charged, and its refund has begun: it buys nothing, unless the refund is cancelled. */
  | {
      readonly status: 'refunding';
      readonly reserved: PaymentReserved;
      readonly settled: PaymentSettled;
      readonly begun: RefundBegun;
      /** The chain has no transfer of the charge; null: it has, or this was not found out. */
      readonly missing: PaymentMissing | null;
    }
  /** Charged and returned: it buys nothing any more, and its authorization is used. */
  | {
      readonly status: 'refunded';
      readonly reserved: PaymentReserved;
      readonly settled: PaymentSettled;
      readonly refunded: PaymentRefunded;
      readonly missing: PaymentMissing | null;
    }
  /** Ended without money moving: the same authorization may be reserved again. */
  | { readonly status: 'rejected' | 'released'; readonly reserved: PaymentReserved };

/** Reserved for a job and not ended: the job is the only one that this payment may ever buy. */
export type BoundPayment = Exclude<Payment, ReturnedPayment | { status: 'absent' | 'rejected' | 'released' }>;

/** Its refund has begun or is recorded: it buys nothing. */
export type ReturnedPayment = Extract<Payment, { status: 'refunding' | 'refunded' }>;

export const absentPayment: Payment = { status: 'absent' };

export const isBound = (payment: Payment): payment is BoundPayment =>
  !['absent', 'refunding', 'refunded', 'rejected', 'released'].includes(payment.status);

export const isReturned = (payment: Payment): payment is ReturnedPayment =>
  payment.status === 'refunding' || payment.status === 'refunded';

export function evolvePayment(payment: Payment, event: PaymentEvent): Payment {
  if (isReturned(payment)) return evolveReturned(payment, event);
  if (event.type === 'PaymentReserved') {
    return isBound(payment) ? payment : { status: 'reserved', reserved: event.data, owner: event.data.owner };
  }
  if (payment.status === 'absent') return payment;
  if (payment.status === 'settled') return evolveSettled(payment, event);
  const { reserved } = payment;
  // The money of this authorization is in, whatever was concluded before and whichever job's call moved it.
  if (event.type === 'PaymentSettled') return { status: 'settled', reserved, settled: event.data };
  if (!isBound(payment)) return payment;
  // Nothing was sent for it, and it can never be paid: it is over.
  if (event.type === 'PaymentRejected') return { status: 'rejected', reserved };
  if (payment.status === 'missing') return payment;
  switch (event.type) {
    case 'RefundBegun':
    case 'RefundCancelled':
    case 'PaymentRefunded':
    case 'PaymentMissing':
      return payment;
    case 'PaymentReleased':
      return { status: 'released', reserved };
    case 'SettlementUnknown':
      return { status: 'unknown', reserved, owner: payment.owner };
    case 'SettlementRetried':
      return { status: 'retried', reserved, owner: event.data.owner };
    default:
      return event satisfies never;
  }
}

function evolveSettled(payment: Extract<Payment, { status: 'settled' }>, event: PaymentEvent): Payment {
  switch (event.type) {
    case 'PaymentMissing':
      return { ...payment, status: 'missing', missing: event.data };
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
    return { ...payment, settled: event.data, missing: null };
  if (payment.status === 'refunded') return payment;
  if (event.type === 'PaymentRefunded')
    return { status: 'refunded', reserved, settled, refunded: event.data, missing };
  if (event.type !== 'RefundCancelled') return payment;
  return missing === null
    ? { status: 'settled', reserved, settled }
    : { status: 'missing', reserved, settled, missing };
}

/** A settle call's answer: `rejected` and `nonce_used` are complete answers; everything else is `unknown` (`cause`: a code). */
export type SettleAnswer =
  | { readonly outcome: 'settled'; readonly transaction: string | null }
  | { readonly outcome: 'rejected'; readonly reason: string }
  | { readonly outcome: 'nonce_used' }
  | { readonly outcome: 'unknown'; readonly cause: string };

/** `first`: it is the first and only settle call ever made for this reservation. */
export type SettleCall = { readonly first: boolean; readonly jobId: string; readonly at: string };

export type SettleFact = EventOf<'PaymentSettled' | 'PaymentRejected' | 'SettlementUnknown'>;

/**
 * What a settle call's answer makes of the payment. A terminal "no" counts only for the first and only call; after a
 * lost answer it may be the echo of our own success.
 */
export function recordSettleAnswer(answer: SettleAnswer, call: SettleCall): SettleFact {
  const { jobId, at } = call;
  const unknown = (cause: string) => settlementUnknown(cause, call);
  const settled = (transaction: string | null, evidence: PaymentSettled['evidence']) =>
    ({
      type: 'PaymentSettled',
      data: { v: 2, jobId, transaction, evidence, settledAt: at, statement: null },
    }) as const;
  const rejected = (reason: string) =>
    ({
      type: 'PaymentRejected',
      data: { v: 2, jobId, reason, evidence: 'facilitator', rejectedAt: at, statement: null },
    }) as const;
  switch (answer.outcome) {
    case 'settled':
      return settled(answer.transaction, 'facilitator');
    case 'nonce_used':
      // To the first call it means that the nonce went elsewhere; after a lost answer, that our own call went through.
      return call.first ? rejected('nonce_used') : settled(null, 'nonce_consumed');
    case 'rejected':
      return call.first ? rejected(answer.reason) : unknown(answer.reason);
    case 'unknown':
      return unknown(answer.cause);
    default:
      return answer satisfies never;
  }
}

function settlementUnknown(cause: string, { jobId, at }: SettleCall): EventOf<'SettlementUnknown'> {
  return { type: 'SettlementUnknown', data: { v: 1, jobId, cause, unknownAt: at } };
}

/** What the chain says of an authorization. */
export type ChainFinding =
  /** Used, and the money of this authorization came to our payee. */
  | { readonly outcome: 'paid'; readonly transaction: string | null }
  | { readonly outcome: 'cancelled' }
  /** Its nonce was used by another authorization of the payer: none of it came to us, and none ever will. */
  | { readonly outcome: 'spent_elsewhere' }
  | { readonly outcome: 'unused'; readonly chainTimeSeconds: number }
  /** No way to the chain is configured. */
  | { readonly outcome: 'no_chain' }
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
  payment: BoundPayment,
  at: string,
): EventOf<'PaymentSettled' | 'PaymentRejected'> | null {
  const { jobId } = payment.reserved;
  const rejected = (reason: string) =>
    ({
      type: 'PaymentRejected',
      data: { v: 2, jobId, reason, evidence: 'chain', rejectedAt: at, statement: null },
    }) as const;
  switch (finding.outcome) {
    case 'paid':
      return {
        type: 'PaymentSettled',
        data: {
          v: 2,
          jobId,
          transaction: finding.transaction,
          evidence: 'chain',
          settledAt: at,
          statement: null,
        },
      };
    case 'cancelled':
      return rejected('authorization_cancelled');
    case 'unused':
      return isSurelyOver(payment.reserved, finding.chainTimeSeconds)
        ? rejected('unused_after_expiry')
        : null;
    case 'spent_elsewhere':
      return rejected('authorization_spent_elsewhere');
    case 'no_chain':
    case 'unavailable':
      return null;
    default:
      return finding satisfies never;
  }
}

/** The fact that follows from the answer "nonce used". The answer alone counts only if no chain can be asked. */
export function recordSpentNonce(finding: ChainFinding, payment: BoundPayment, call: SettleCall): SettleFact {
  if (finding.outcome === 'no_chain') return recordSettleAnswer({ outcome: 'nonce_used' }, call);
  return reconcile(finding, payment, call.at) ?? settlementUnknown('nonce_used', call);
}
