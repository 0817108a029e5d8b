// The client of the facilitator, which verifies a payment and moves the money.
// Only a complete and well-formed answer is a result; any other answer leaves the result unknown.
import { z } from '@x402/core/schemas';
import type { PaymentPayload } from '@x402/core/types';
import {
  OPEN_REASONS,
  OWN_FAILURE_REASONS,
  type PaymentReason,
  TERMINAL_REASONS,
} from '#src/domain/payment/reasons.ts';
import type { SettleAnswer } from '#src/domain/payment/settlement.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Payments, PresentedPayment, Verified } from '#src/ports/payments.ts';
import { carriedOf } from './authorization.ts';
import { type ExchangeAnswer, type ExchangeFailure, pooledExchange, singleExchange } from './exchange.ts';
import { type FacilitatorWatch, isComplete, type Unusable, unusable } from './facilitator-watch.ts';
import type { LoginHeaders } from './login.ts';
import { networkNameV1, type Pricing, requirementsOf } from './requirements.ts';

export type FacilitatorAddress = {
  /** Without a trailing slash. */
  readonly facilitatorUrl: string;
  readonly login: LoginHeaders;
};

type FacilitatorDeps = FacilitatorAddress & {
  readonly pricing: Pricing;
  readonly timeoutMs: number;
  readonly watch: FacilitatorWatch;
  readonly logger: Logger;
};

export function facilitator(deps: FacilitatorDeps): Pick<Payments, 'verify' | 'settle'> {
  const { facilitatorUrl, login, timeoutMs, pricing, watch, logger } = deps;
  const requestTo = (operation: 'verify' | 'settle', payment: PresentedPayment) => ({
    url: `${facilitatorUrl}/${operation}`,
    login,
    body: bodyOf(pricing, payment),
    timeoutMs,
  });

  async function settle(payment: PresentedPayment): Promise<SettleAnswer> {
    const answer = await singleExchange(requestTo('settle', payment));
    const form = SettleForm.safeParse('code' in answer ? undefined : answer.json);
    const failure = unusable(answer, form.success);
    if (failure === null) watch.worked('settle');
    else watch.failed('settle', failure, whyOf(answer));
    if ('code' in answer) return unknown(`facilitator_${answer.code}`);
    if (failure?.problem === 'login_refused')
      return unknown('facilitator_login_refused', form.success ? transactionOf(form.data) : null);
    return readSettle(answer, payment);
  }

  return {
    async verify(payment) {
      const answer = await pooledExchange(requestTo('verify', payment));
      const read = readVerify(answer, payment);
      if ('outcome' in read) {
        watch.worked('verify');
        return read;
      }
      watch.failed('verify', read, whyOf(answer));
      return { outcome: 'unavailable' };
    },
    async settle(payment) {
      try {
        return await settle(payment);
      } catch (cause) {
        logger.bug('a settle call failed in this service; the payment stays unconfirmed', { cause });
        return unknown('internal_error');
      }
    },
  };
}

const whyOf = (answer: ExchangeAnswer | ExchangeFailure) => ('code' in answer ? answer.why : null);

/**
 * Always version 2, rebuilt from our terms, for every payment header. Amount and payee are those of the authorization: a
 * payment that was accepted before our terms changed is settled as it was accepted.
 */
function bodyOf(pricing: Pricing, payment: PresentedPayment) {
  const { signed, resourceUrl } = carriedOf(payment);
  const { required, discovery } = pricing.routeOf(resourceUrl);
  const { authorization } = signed;
  const requirements = requirementsOf(pricing.terms, payment);
  const paymentPayload: PaymentPayload = {
    x402Version: 2,
    resource: required.resource,
    accepted: requirements,
    payload: { signature: signed.signature, authorization },
    extensions: discovery,
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

/** A verdict, or why there is none. */
function readVerify(
  answer: ExchangeAnswer | ExchangeFailure,
  payment: PresentedPayment,
): Verified | Unusable {
  const form = VerifyForm.safeParse('code' in answer ? undefined : answer.json);
  const failure = unusable(answer, form.success);
  if (failure !== null || !form.success || 'code' in answer) return failure ?? MALFORMED;
  const { isValid, invalidReason, payer } = form.data;
  if (!isValid) {
    const reason = knownCodeOr(invalidReason, 'invalid');
    return OWN_FAILURE.has(reason) ? { problem: null, cause: reason } : { outcome: 'invalid', reason };
  }
  // `isValid` with an error status, or for another payer, is no result for this payment.
  if (answer.status >= 300 || differs(payer, payment.payer)) return MALFORMED;
  return { outcome: 'valid' };
}

const MALFORMED: Unusable = { problem: 'failing', cause: 'answer_malformed' };

const unknown = (cause: string, transaction: string | null = null): SettleAnswer => ({
  outcome: 'unknown',
  cause,
  transaction,
});

function readSettle(answer: ExchangeAnswer, payment: PresentedPayment): SettleAnswer {
  const form = SettleForm.safeParse(answer.json);
  const transaction = form.success ? transactionOf(form.data) : null;
  if (!isComplete(answer)) return unknown(`facilitator_status_${answer.status}`, transaction);
  if (!form.success) return unknown('facilitator_answer_malformed');
  const { success, errorReason } = form.data;
  if (success) {
    return answer.status < 300
      ? readSettled(form.data, payment)
      : unknown('facilitator_answer_malformed', transaction);
  }
  const code = knownCodeOr(errorReason, 'settlement_failed');
  // A refusal with a transaction is not final: the transaction may move the money.
  return TERMINAL.has(code) && transaction === null
    ? { outcome: 'rejected', reason: code }
    : unknown(code, transaction);
}

/** A settlement of another payer, network or amount is not the settlement of this payment. */
function readSettled(answer: z.infer<typeof SettleForm>, payment: PresentedPayment): SettleAnswer {
  const { network, amount, payer } = payment;
  const transaction = transactionOf(answer);
  const sameNetwork = !differs(answer.network, network) || answer.network === networkNameV1(network);
  if (!sameNetwork || differs(answer.payer, payer) || differs(answer.amount, amount)) {
    return unknown('facilitator_answer_mismatch', transaction);
  }
  // What no transaction shows is not believed: the chain is looked at.
  if (transaction === null)
    return unknown(`facilitator_${answer.transaction ? 'answer_malformed' : 'transaction_missing'}`);
  return { outcome: 'settled', transaction };
}

/** Lower case; null: the answer contains no transaction hash, or zeros in its place. */
const transactionOf = ({ transaction }: z.infer<typeof SettleForm>): string | null =>
  /^0x(?!0{64})[0-9a-f]{64}$/i.test(transaction ?? '') ? (transaction ?? '').toLowerCase() : null;

/** A missing value does not differ. */
const differs = (answered: string | null | undefined, expected: string): boolean =>
  answered !== null && answered !== undefined && answered !== '' && answered.toLowerCase() !== expected;

// ── facilitator codes ────────────────────────────────────────────────────────────────────────────────
// The reason codes of facilitators. They are matched exactly: any other text may contain values, a signature or our own
// login, which must not be logged, stored or returned.

/** Ends the payment if it is the answer to its first settle call. */
const TERMINAL: ReadonlySet<string> = new Set(TERMINAL_REASONS);
/** A verify that failed in the facilitator. */
const OWN_FAILURE: ReadonlySet<string> = new Set(OWN_FAILURE_REASONS);
const OPEN: ReadonlySet<string> = new Set(OPEN_REASONS);

const isKnown = (code: string): boolean => TERMINAL.has(code) || OWN_FAILURE.has(code) || OPEN.has(code);

/** The facilitator's code if it is a known one, otherwise `other`. */
export const knownCodeOr = (code: unknown, other: PaymentReason): string =>
  typeof code === 'string' && isKnown(code) ? code : other;
