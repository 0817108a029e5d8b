// The facilitator's reason codes, matched exactly: which end a payment, which say that its nonce is used, which tell of
// the facilitator's own failure.
// Texts are never looked at: they name values and signatures of whatever went wrong.

/** Version 2 facilitators (package @x402/evm); version 1 has none: it says free text. */
const NONCE_USED: ReadonlySet<string> = new Set(['invalid_exact_evm_nonce_already_used']);

/**
 * Answers that a facilitator gives before it sends anything to the chain, about the authorization itself: signature,
 * recipient, value, time, balance, network and asset. What may follow a transaction (`…_transaction_failed`,
 * `…_simulation_failed`, `…_transfer_event_mismatch`, `settlement_pending`, `invalid_transaction_state`,
 * `duplicate_settlement`, `unexpected_settle_error`) or says nothing of the payment (`invalid_payload`,
 * `invalid_x402_version`, …) is not among them.
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
 * Said of a verify that the facilitator could not finish, or of what its node shows it of our asset: nothing of the
 * payment. Package @x402/evm has the first also for a node that is away, and for a transfer that the asset refuses for
 * a reason of its own.
 */
const OWN_FAILURE: ReadonlySet<string> = new Set([
  'invalid_exact_evm_transaction_simulation_failed',
  'asset_not_deployed_contract',
  // x402, version 1
  'unexpected_verify_error',
]);

export const isOwnFailure = (code: string): boolean => OWN_FAILURE.has(code);
export const isNonceUsed = (code: string): boolean => NONCE_USED.has(code);
export const isTerminal = (code: string): boolean => TERMINAL.has(code);

/**
 * A code as codes are written, and no part of a signature, else `other`: what a stranger says goes into events and
 * answers only in this form.
 */
export const codeOr = (code: unknown, other: string): string =>
  typeof code === 'string' && /^[a-z0-9_]{1,80}$/.test(code) && !/[0-9a-f]{32}/.test(code) ? code : other;
