// The reason codes of facilitators. They are matched exactly: any other text may contain values, a signature or our own
// login, which must not be logged, stored or returned.

/**
 * Codes about the authorization itself (signature, recipient, value, time, balance, network, asset), returned before
 * anything is sent to the chain.
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

/** Codes that may follow a transaction, and codes that state nothing about the payment. */
const OPEN: ReadonlySet<string> = new Set([
  // @x402/evm, scheme exact
  'invalid_exact_evm_nonce_already_used',
  'invalid_exact_evm_transaction_failed',
  'invalid_exact_evm_transfer_event_mismatch',
  'invalid_transaction_state',
  'settlement_pending',
  'smart_wallet_deployment_failed',
  'unknown_settlement_error',
  // x402, version 1
  'duplicate_settlement',
  'invalid_payload',
  'invalid_payment',
  'invalid_payment_requirements',
  'invalid_x402_version',
  'unexpected_settle_error',
  // Coinbase's developer platform
  'invalid_exact_evm_payload_authorization_from_address_kyt',
  'invalid_exact_evm_payload_authorization_to_address_kyt',
  'invalid_exact_evm_payload_authorization_typed_data_message',
  'invalid_exact_evm_payload_authorization_value_too_low',
  'invalid_exact_evm_payload_signature_address',
  'settle_exact_evm_transaction_confirmation_timed_out',
  'settle_exact_failed_onchain',
  'settle_exact_node_failure',
]);

const isKnown = (code: string): boolean => TERMINAL.has(code) || OWN_FAILURE.has(code) || OPEN.has(code);

/** Ends the payment if it is the answer to its first settle call. */
export const isFinalRefusal = (code: string): boolean => TERMINAL.has(code);

/** A verify that failed in the facilitator. */
export const isOwnFailure = (code: string): boolean => OWN_FAILURE.has(code);

/** The facilitator's code if it is a known one, otherwise `other`. */
export const knownCodeOr = (code: unknown, other: string): string =>
  typeof code === 'string' && isKnown(code) ? code : other;
