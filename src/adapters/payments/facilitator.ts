// The client of the facilitator, which verifies a payment and moves the money.
// Only a complete and well-formed answer is a result; any other answer leaves the result unknown.
import { z } from '@x402/core/schemas';
import type { PaymentPayload } from '@x402/core/types';
import type { SettleAnswer } from '#src/domain/payment/state.ts';
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
    const reason = codeOr(invalidReason, 'invalid');
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
  const code = codeOr(errorReason, 'settlement_failed');
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
  return transaction === null && (answer.transaction ?? '') !== ''
    ? unknown('facilitator_answer_malformed')
    : { outcome: 'settled', transaction };
}

/** Lower case; null: the answer contains no transaction hash. */
const transactionOf = ({ transaction }: z.infer<typeof SettleForm>): string | null =>
  /^0x[0-9a-f]{64}$/i.test(transaction ?? '') ? (transaction ?? '').toLowerCase() : null;

/** A missing value does not differ. */
const differs = (answered: string | null | undefined, expected: string): boolean =>
  answered !== null && answered !== undefined && answered !== '' && answered.toLowerCase() !== expected;

// Reason codes are matched exactly. Texts are not parsed: they contain values and signatures.

/**
 * Codes about the authorization itself (signature, recipient, value, time, balance, network, asset), returned before
 * anything is sent to the chain. Excluded: codes that may follow a transaction (`…_transaction_failed`,
 * `…_simulation_failed`, `…_transfer_event_mismatch`, `…_nonce_already_used`, `settlement_pending`,
 * `invalid_transaction_state`, `duplicate_settlement`, `unexpected_settle_error`) and codes that state nothing about the payment (`invalid_payload`,
 * `invalid_x402_version`, …).
 */
const TERMINAL: ReadonlySet<string> = new Set([
  // @x402/evm, scheme exact
  'invalid_exact_evm_scheme',
  'invalid_exact_evm_network_mismatch',
  'invalid_exact_evm_missing_eip712_domain',
  'invalid_exact_evm_recipient_mismatch',
  'invalid_exact_evm_signature',
  'invalid_exact_evm_failed_to_parse_signature',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_authorization_value',
  'invalid_exact_evm_payload_authorization_value_mismatch',
  'invalid_exact_evm_token_name_mismatch',
  'invalid_exact_evm_token_version_mismatch',
  'invalid_exact_evm_eip3009_not_supported',
  'invalid_exact_evm_insufficient_balance',
  'asset_not_deployed_contract',
  'eip6492_factory_not_allowed',
  'unsupported_payload_type',
  // x402, version 1
  'insufficient_funds',
  'invalid_exact_evm_payload_authorization_value',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_payload_recipient_mismatch',
  'invalid_exact_evm_payload_undeployed_smart_wallet',
  'invalid_network',
  'invalid_scheme',
  'unsupported_scheme',
  'payment_expired',
]);

/**
 * Codes of a verify that failed in the facilitator; they state nothing about the payment. Package @x402/evm returns the
 * first one also if its node is unavailable, and for every reason for which the asset rejects the transfer.
 */
const OWN_FAILURE: ReadonlySet<string> = new Set([
  'invalid_exact_evm_transaction_simulation_failed',
  'asset_not_deployed_contract',
  // x402, version 1
  'unexpected_verify_error',
]);

/** The facilitator's code if it has the form of a code and contains no part of a signature, otherwise `other`. */
const codeOr = (code: unknown, other: string): string =>
  typeof code === 'string' && /^[a-z0-9_]{1,80}$/.test(code) && !/[0-9a-f]{32}/.test(code) ? code : other;
