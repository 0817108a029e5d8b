// The facilitator: is this payment good, and move the money. What its answers mean is decided here, conservatively:
// only a complete and well-formed answer says yes or no, everything else leaves the matter open.

import { z } from '@x402/core/schemas';
import type { PaymentPayload } from '@x402/core/types';
import type { SettleAnswer } from '#src/domain/payment/state.ts';
import type { Payments, PresentedPayment, Verified } from '#src/ports/payments.ts';
import { codeOr, isNonceUsed, isOwnFailure, isTerminal } from './codes.ts';
import type { Exchange, ExchangeAnswer } from './exchange.ts';
import { carriedOf } from './present.ts';
import type { Asked } from './requirements.ts';
import { networkNameV1, requirementsOf } from './terms.ts';

export type FacilitatorDeps = {
  readonly asked: Asked;
  readonly exchange: Exchange;
  /** Without a slash at its end. */
  readonly facilitatorUrl: string;
  readonly timeoutMs: number;
};

export function facilitator(deps: FacilitatorDeps): Pick<Payments, 'verify' | 'settle'> {
  const { exchange, facilitatorUrl, timeoutMs, asked } = deps;
  const ask = (operation: 'verify' | 'settle', payment: PresentedPayment) =>
    exchange({ url: `${facilitatorUrl}/${operation}`, body: requestOf(asked, payment), timeoutMs });
  return {
    async verify(payment) {
      const answer = await ask('verify', payment);
      return 'code' in answer ? { outcome: 'unavailable' } : readVerify(answer, payment);
    },
    async settle(payment) {
      const answer = await ask('settle', payment);
      if ('code' in answer) return { outcome: 'unknown', cause: `facilitator_${answer.code}` };
      return readSettle(answer, payment);
    },
  };
}

/**
 * Always version 2, rebuilt from our own terms, whatever header brought it. Amount and payee are the authorization's: a
 * payment that was accepted before they changed is settled as it was accepted.
 */
function requestOf(asked: Asked, payment: PresentedPayment) {
  const { signed, resourceUrl } = carriedOf(payment);
  const { required, discovery } = asked.routeOf(resourceUrl);
  const { authorization } = signed;
  const requirements = requirementsOf(asked.terms, payment);
  const paymentPayload: PaymentPayload = {
    x402Version: 2,
    resource: required.resource,
    accepted: requirements,
    payload: { signature: signed.signature, authorization },
    extensions: discovery.extension,
  };
  return { x402Version: 2, paymentPayload, paymentRequirements: requirements };
}

const Text = z.string().nullish();
const VerifyForm = z.object({ isValid: z.boolean(), invalidReason: Text, payer: Text });
const SettleForm = z.object({
  success: z.boolean(),
  errorReason: Text,
  transaction: Text,
  network: Text,
  payer: Text,
  amount: Text,
});

/**
 * A facilitator may say no with 4xx. With 5xx it says that it failed: whatever JSON comes with it, the operation may
 * have gone on. The three others are said by what stands between us and it.
 */
const isComplete = ({ status }: ExchangeAnswer): boolean =>
  (status >= 200 && status < 300) || (status >= 400 && status < 500 && ![408, 425, 429].includes(status));

function readVerify(answer: ExchangeAnswer, payment: PresentedPayment): Verified {
  const form = VerifyForm.safeParse(answer.json);
  if (!isComplete(answer) || !form.success) return { outcome: 'unavailable' };
  const { isValid, invalidReason, payer } = form.data;
  if (!isValid) {
    const reason = codeOr(invalidReason, 'invalid');
    return isOwnFailure(reason) ? { outcome: 'unavailable' } : { outcome: 'invalid', reason };
  }
  // a yes with an error's status, or about someone else, is no yes to this payment
  if (answer.status >= 300 || differs(payer, payment.payer)) return { outcome: 'unavailable' };
  return { outcome: 'valid' };
}

function readSettle(answer: ExchangeAnswer, payment: PresentedPayment): SettleAnswer {
  if (!isComplete(answer)) return { outcome: 'unknown', cause: `facilitator_status_${answer.status}` };
  const form = SettleForm.safeParse(answer.json);
  if (!form.success) return { outcome: 'unknown', cause: 'facilitator_answer_malformed' };
  const { success, errorReason } = form.data;
  if (success) {
    return answer.status < 300
      ? readSettled(form.data, payment)
      : { outcome: 'unknown', cause: 'facilitator_answer_malformed' };
  }
  const code = codeOr(errorReason, 'settlement_failed');
  if (isNonceUsed(code)) return { outcome: 'nonce_used' };
  return isTerminal(code) ? { outcome: 'rejected', reason: code } : { outcome: 'unknown', cause: code };
}

/** A settlement of another payer, network or amount than ours is none of this payment. */
function readSettled(said: z.infer<typeof SettleForm>, payment: PresentedPayment): SettleAnswer {
  const { network, amount, payer } = payment;
  const sameNetwork = !differs(said.network, network) || said.network === networkNameV1(network);
  if (!sameNetwork || differs(said.payer, payer) || differs(said.amount, amount)) {
    return { outcome: 'unknown', cause: 'facilitator_answer_mismatch' };
  }
  const transaction = said.transaction ?? '';
  if (transaction === '') return { outcome: 'settled', transaction: null };
  return /^0x[0-9a-f]{64}$/i.test(transaction)
    ? { outcome: 'settled', transaction: transaction.toLowerCase() }
    : { outcome: 'unknown', cause: 'facilitator_answer_malformed' };
}

/** What is not said does not differ. */
const differs = (said: string | null | undefined, ours: string): boolean =>
  said !== null && said !== undefined && said !== '' && said.toLowerCase() !== ours;
