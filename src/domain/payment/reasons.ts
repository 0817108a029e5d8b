// Every reason of a 402, once: this relay's own, and those of facilitators, which are passed on. A facilitator's other texts
// are not, because they may contain values, a signature or our own login.

type Reason = { readonly meaning: string; readonly action: string };

const SIGN = 'Sign a new payment for the terms of this answer.';
const CLOCK =
  "The answer's `message` states the difference from the header `Date`. If the payment was just signed, set the machine's clock; sign a new payment.";
const CLIENT = 'Let an x402 client write the header; a snippet of /api/snippets does.';

/** Of this relay. */
export const PAYMENT_REASONS = {
  payment_header_too_long: { meaning: 'The payment header is longer than any payment.', action: CLIENT },
  payment_header_not_base64: { meaning: 'The payment header is not base64.', action: CLIENT },
  payment_header_not_json: { meaning: 'The payment header is base64, but not of JSON.', action: CLIENT },
  invalid_payment_header: {
    meaning: 'The payment header is JSON, but no x402 payment of the version of its header name.',
    action: 'Send version 2 in PAYMENT-SIGNATURE, or version 1 in X-PAYMENT.',
  },
  invalid_payload: { meaning: 'The payload is no signed authorization (EIP-3009).', action: SIGN },
  invalid_signature: {
    meaning: "The signature is not by the key of the authorization's sender.",
    action: SIGN,
  },
  wallet_not_deployed: {
    meaning:
      'The payer is a contract wallet that is not deployed, and the authorization is not valid yet: only a deployed wallet can be asked whether it accepts a signature for a later run.',
    action: 'Deploy the wallet and sign again, or sign an authorization that is valid now.',
  },
  unsupported_scheme: { meaning: 'The scheme is not `exact`.', action: SIGN },
  unsupported_payload_type: {
    meaning: 'The payload is no transfer with authorization (EIP-3009).',
    action: SIGN,
  },
  network_mismatch: { meaning: 'The payment is for another network.', action: SIGN },
  asset_mismatch: { meaning: 'The payment is in another asset.', action: SIGN },
  recipient_mismatch: { meaning: 'The payment is to another payee.', action: SIGN },
  amount_mismatch: { meaning: 'The payment is of another amount.', action: SIGN },
  payer_is_payee: { meaning: 'The payee cannot pay itself.', action: 'Pay from another wallet.' },
  authorization_expired: { meaning: 'The authorization has expired, or expires too soon.', action: CLOCK },
  authorization_too_far_ahead: {
    meaning: 'The authorization is valid for too long.',
    action: `Sign one that expires within \`maxTimeoutSeconds\`. ${CLOCK}`,
  },
  authorization_not_yet_valid: {
    meaning: 'The authorization is not valid yet.',
    action: CLOCK,
  },
  authorization_cancelled: {
    meaning: 'The payer has cancelled the authorization on the chain.',
    action: SIGN,
  },
  unused_after_expiry: { meaning: 'The authorization expired unused: nothing was charged.', action: SIGN },
  authorization_spent_elsewhere: {
    meaning: 'The nonce of the authorization was used for another transfer.',
    action: SIGN,
  },
  invalid: { meaning: 'The facilitator refuses the payment without a known reason.', action: SIGN },
  settlement_failed: { meaning: 'The facilitator did not settle, without a known reason.', action: SIGN },
} as const satisfies Readonly<Record<string, Reason>>;

export type PaymentReason = keyof typeof PAYMENT_REASONS;

/**
 * Codes about the authorization itself (signature, recipient, value, time, balance, network, asset), returned before
 * anything is sent to the chain.
 */
export const TERMINAL_REASONS = [
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
] as const;

/**
 * Codes of a verify that failed in the facilitator; they state nothing about the payment. Package @x402/evm returns the
 * first one also if its node is unavailable, and for every reason for which the asset rejects the transfer.
 */
export const OWN_FAILURE_REASONS = [
  'invalid_exact_evm_transaction_simulation_failed',
  'asset_not_deployed_contract',
  // x402, version 1
  'unexpected_verify_error',
] as const;

/** Codes that may follow a transaction, and codes that state nothing about the payment. */
export const OPEN_REASONS = [
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
] as const;

export const FACILITATOR_REASON: Reason = {
  meaning:
    'A code of the facilitator, passed on: it refuses this payment. The code names what is wrong with it.',
  action: 'Correct what the code names (balance, signature, time, value), and sign a new payment.',
};

/** Every reason that a 402 can have, this relay's own first. */
export const REASONS_OF_402: readonly string[] = [
  ...new Set<string>([
    ...Object.keys(PAYMENT_REASONS),
    ...TERMINAL_REASONS,
    ...OWN_FAILURE_REASONS,
    ...OPEN_REASONS,
  ]),
];
