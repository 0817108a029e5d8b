// The client of the facilitator, which verifies a payment, moves the money and reports the kinds of payment it supports.
// Only a complete and well-formed answer is a result; any other answer leaves the result unknown.
import { z } from '@x402/core/schemas';
import type { PaymentPayload } from '@x402/core/types';
import type { SettleAnswer } from '#src/domain/payment/state.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Payments, PresentedPayment, Verified } from '#src/ports/payments.ts';
import { carriedOf } from './authorization.ts';
import { type ExchangeAnswer, pooledExchange, singleExchange } from './exchange.ts';
import { networkNameV1, type Pricing, requirementsOf, type Terms } from './requirements.ts';

type FacilitatorDeps = {
  readonly pricing: Pricing;
  /** Without a trailing slash. */
  readonly facilitatorUrl: string;
  readonly timeoutMs: number;
};

export function facilitator(deps: FacilitatorDeps): Pick<Payments, 'verify' | 'settle'> {
  const { facilitatorUrl, timeoutMs, pricing } = deps;
  const requestTo = (operation: 'verify' | 'settle', payment: PresentedPayment) => ({
    url: `${facilitatorUrl}/${operation}`,
    body: bodyOf(pricing, payment),
    timeoutMs,
  });
  return {
    async verify(payment) {
      const answer = await pooledExchange(requestTo('verify', payment));
      return 'code' in answer ? { outcome: 'unavailable' } : readVerify(answer, payment);
    },
    async settle(payment) {
      const answer = await singleExchange(requestTo('settle', payment));
      if ('code' in answer) return unknown(`facilitator_${answer.code}`);
      return readSettle(answer, payment);
    },
  };
}

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

/**
 * A facilitator may reject a payment with 4xx. 5xx means that it failed, and the operation may have continued, whatever the
 * body contains. 408, 425 and 429 are sent by proxies.
 */
const isComplete = ({ status }: ExchangeAnswer): boolean =>
  (status >= 200 && status < 300) || (status >= 400 && status < 500 && ![408, 425, 429].includes(status));

function readVerify(answer: ExchangeAnswer, payment: PresentedPayment): Verified {
  const form = VerifyForm.safeParse(answer.json);
  if (!isComplete(answer) || !form.success) return { outcome: 'unavailable' };
  const { isValid, invalidReason, payer } = form.data;
  if (!isValid) {
    const reason = codeOr(invalidReason, 'invalid');
    return OWN_FAILURE.has(reason) ? { outcome: 'unavailable' } : { outcome: 'invalid', reason };
  }
  // `isValid` with an error status, or for another payer, is no result for this payment.
  if (answer.status >= 300 || differs(payer, payment.payer)) return { outcome: 'unavailable' };
  return { outcome: 'valid' };
}

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

const HEALTH_TIMEOUT_MS = 2000;
const HEALTH_CACHED_MS = 10_000;
/** With a larger difference, valid payments may be judged expired or not yet valid. */
const SKEW_MS = 5000;

const Supported = z.object({
  kinds: z.array(z.object({ x402Version: z.number(), scheme: z.string(), network: z.string() })),
});

/** Whether the facilitator answers and supports our kind of payment. One request at a time, cached for 10 s. Never throws. */
export function facilitatorHealth(deps: {
  readonly terms: Terms;
  readonly facilitatorUrl: string;
  readonly clock: Clock;
  readonly logger: Logger;
}): Payments['health'] {
  const { terms, facilitatorUrl, clock, logger } = deps;
  let last: { readonly atMs: number; readonly answer: Promise<{ readonly ok: boolean }> } | null = null;
  let skewLogged = false;

  async function query(): Promise<{ readonly ok: boolean }> {
    const answer = await singleExchange({ url: `${facilitatorUrl}/supported`, timeoutMs: HEALTH_TIMEOUT_MS });
    if ('code' in answer) return { ok: false };
    logSkew(answer);
    return { ok: supports(terms, answer) };
  }

  function logSkew({ dateMs }: ExchangeAnswer): void {
    if (dateMs === null || skewLogged) return;
    const skewMs = clock.now() - dateMs;
    // The header has whole seconds.
    if (Math.abs(skewMs) <= SKEW_MS + 1000) return;
    skewLogged = true;
    const skewSeconds = Math.round(skewMs / 1000);
    const message =
      'the facilitator’s clock differs from ours: payments may be judged expired or not yet valid';
    logger.warn(message, { skewSeconds });
  }

  return () => {
    const atMs = clock.monotonic();
    if (last === null || atMs - last.atMs >= HEALTH_CACHED_MS) last = { atMs, answer: query() };
    return last.answer;
  };
}

function supports(terms: Terms, answer: ExchangeAnswer): boolean {
  const form = Supported.safeParse(answer.json);
  if (answer.status !== 200 || !form.success) return false;
  return form.data.kinds.some(
    ({ x402Version, scheme, network }) =>
      x402Version === 2 && scheme === terms.requirements.scheme && covers(network, terms.network),
  );
}

/** Facilitators list a network or all of a namespace: `eip155:*`. */
const covers = (listed: string, network: string): boolean =>
  listed === network || listed === `${network.slice(0, network.indexOf(':'))}:*`;
