// Events of a payment's stream, `payment-<sha256(network:asset:from:nonce)>`, and of a key's claim,
// `claim-<HMAC(secret, payer, key)>`.
import { type Static, Type } from '@sinclair/typebox';
import { Hex, Instant, Nullable, strict, Text, V1 } from '../event-fields.ts';

export const PaymentReserved = Type.Object(
  {
    v: V1,
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
  },
  strict,
);
export type PaymentReserved = Static<typeof PaymentReserved>;

export const PaymentSettled = Type.Object(
  {
    v: V1,
    jobId: Text,
    transaction: Nullable(Text),
    evidence: Type.Union([
      Type.Literal('facilitator'),
      Type.Literal('nonce_consumed'),
      Type.Literal('chain'),
      Type.Literal('operator'),
    ]),
    settledAt: Instant,
  },
  strict,
);
export type PaymentSettled = Static<typeof PaymentSettled>;

/** The payment ended without money moving. `reason`: the facilitator's code or `unused_after_expiry`. */
export const PaymentRejected = Type.Object(
  {
    v: V1,
    jobId: Text,
    reason: Text,
    evidence: Type.Union([Type.Literal('facilitator'), Type.Literal('chain'), Type.Literal('operator')]),
    rejectedAt: Instant,
  },
  strict,
);
export type PaymentRejected = Static<typeof PaymentRejected>;

/** Given up before settlement because another job holds the key. */
export const PaymentReleased = Type.Object(
  { v: V1, jobId: Text, lostKeyTo: Text, releasedAt: Instant },
  strict,
);
export type PaymentReleased = Static<typeof PaymentReleased>;

/** A settle call whose answer says neither yes nor no. `cause`: a code, never a text of the facilitator. */
export const SettlementUnknown = Type.Object({ v: V1, jobId: Text, cause: Text, unknownAt: Instant }, strict);
export type SettlementUnknown = Static<typeof SettlementUnknown>;

/** A retry's claim, appended before it acts. */
export const SettlementRetried = Type.Object({ v: V1, jobId: Text, owner: Text, retriedAt: Instant }, strict);
export type SettlementRetried = Static<typeof SettlementRetried>;

export const IdempotencyKeyClaimed = Type.Object(
  { v: V1, jobId: Text, fingerprint: Hex, paymentStream: Nullable(Text), claimedAt: Instant },
  strict,
);
export type IdempotencyKeyClaimed = Static<typeof IdempotencyKeyClaimed>;

export const IdempotencyKeyReleased = Type.Object(
  {
    v: V1,
    jobId: Text,
    reason: Type.Union([
      Type.Literal('payment_rejected'),
      Type.Literal('payment_released'),
      Type.Literal('retention_over'),
    ]),
    releasedAt: Instant,
  },
  strict,
);
export type IdempotencyKeyReleased = Static<typeof IdempotencyKeyReleased>;
