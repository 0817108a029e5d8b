// Events of a payment's stream, `payment-<sha256(network:asset:from:nonce)>`, and of a key's claim,
// `claim-<HMAC(secret, payer, key)>`.
import { Type } from '@sinclair/typebox';
import { declareEvent, type EventData, Hex, Instant, Nullable, oneOf, Text } from '../event-fields.ts';

export const PaymentReserved = declareEvent('payment', 'reservedAt', {
  jobId: Text,
  fingerprint: Hex,
  scheme: Text,
  network: Text,
  asset: Text,
  amount: Type.String({ pattern: '^\\d+$' }),
  payTo: Text,
  payer: Text,
  nonce: Text,
  /** Unix seconds, decimal. */
  validBefore: Type.String({ pattern: '^\\d+$' }),
  payloadHash: Hex,
  /** The protocol version of the header that brought it first. */
  x402Version: Type.Union([Type.Literal(1), Type.Literal(2)]),
  owner: Text,
  reservedAt: Instant,
});
export type PaymentReserved = EventData<typeof PaymentReserved>;

export const PaymentSettled = declareEvent('payment', 'settledAt', {
  jobId: Text,
  transaction: Nullable(Text),
  evidence: oneOf('facilitator', 'nonce_consumed', 'chain', 'operator'),
  settledAt: Instant,
});
export type PaymentSettled = EventData<typeof PaymentSettled>;

/** The payment ended without money moving. `reason`: the facilitator's code or `unused_after_expiry`. */
export const PaymentRejected = declareEvent('payment', 'rejectedAt', {
  jobId: Text,
  reason: Text,
  evidence: oneOf('facilitator', 'chain', 'operator'),
  rejectedAt: Instant,
});
export type PaymentRejected = EventData<typeof PaymentRejected>;

/** Given up before settlement because another job holds the key. */
export const PaymentReleased = declareEvent('payment', 'releasedAt', {
  jobId: Text,
  lostKeyTo: Text,
  releasedAt: Instant,
});
export type PaymentReleased = EventData<typeof PaymentReleased>;

/** A settle call whose answer says neither yes nor no. `cause`: a code, never a text of the facilitator. */
export const SettlementUnknown = declareEvent('payment', 'unknownAt', {
  jobId: Text,
  cause: Text,
  unknownAt: Instant,
});
export type SettlementUnknown = EventData<typeof SettlementUnknown>;

/** A retry's claim, appended before it acts. */
export const SettlementRetried = declareEvent('payment', 'retriedAt', {
  jobId: Text,
  owner: Text,
  retriedAt: Instant,
});
export type SettlementRetried = EventData<typeof SettlementRetried>;

/** The charge was returned in full. `evidence`: the transfer was found on the chain, or the operator stated it. */
export const PaymentRefunded = declareEvent('payment', 'refundedAt', {
  jobId: Text,
  network: Text,
  asset: Text,
  amount: Type.String({ pattern: '^\\d+$' }),
  payer: Text,
  transaction: Type.String({ pattern: '^0x[0-9a-f]{64}$' }),
  evidence: oneOf('chain', 'operator'),
  refundedAt: Instant,
});
export type PaymentRefunded = EventData<typeof PaymentRefunded>;

export const IdempotencyKeyClaimed = declareEvent('claim', 'claimedAt', {
  jobId: Text,
  fingerprint: Hex,
  paymentStream: Nullable(Text),
  claimedAt: Instant,
});
export type IdempotencyKeyClaimed = EventData<typeof IdempotencyKeyClaimed>;

export const IdempotencyKeyReleased = declareEvent('claim', 'releasedAt', {
  jobId: Text,
  reason: oneOf('payment_rejected', 'payment_released', 'retention_over'),
  releasedAt: Instant,
});
export type IdempotencyKeyReleased = EventData<typeof IdempotencyKeyReleased>;

/** What identifies an authorization on its chain; its SHA-256, lower-case hex, names the payment's stream. */
export const identityText = ({
  network,
  asset,
  payer,
  nonce,
}: Pick<PaymentReserved, 'network' | 'asset' | 'payer' | 'nonce'>): string =>
  `${network}:${asset}:${payer}:${nonce}`;
