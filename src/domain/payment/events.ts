// Events of a payment's stream, `payment-<sha256(network:asset:from:nonce)>`, and of a key's claim,
// `claim-<HMAC(secret, payer, key)>`.
import { Type } from '@sinclair/typebox';
import { declareEvent, type EventData, Hex, Instant, Nullable, strict, Text, V1 } from '../event-fields.ts';

export const PaymentReserved = declareEvent({
  stream: 'payment',
  time: 'reservedAt',
  versions: {
    1: Type.Object(
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
    ),
  },
});
export type PaymentReserved = EventData<typeof PaymentReserved>;

export const PaymentSettled = declareEvent({
  stream: 'payment',
  time: 'settledAt',
  versions: {
    1: Type.Object(
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
    ),
  },
});
export type PaymentSettled = EventData<typeof PaymentSettled>;

/** The payment ended without money moving. `reason`: the facilitator's code or `unused_after_expiry`. */
export const PaymentRejected = declareEvent({
  stream: 'payment',
  time: 'rejectedAt',
  versions: {
    1: Type.Object(
      {
        v: V1,
        jobId: Text,
        reason: Text,
        evidence: Type.Union([Type.Literal('facilitator'), Type.Literal('chain'), Type.Literal('operator')]),
        rejectedAt: Instant,
      },
      strict,
    ),
  },
});
export type PaymentRejected = EventData<typeof PaymentRejected>;

/** Given up before settlement because another job holds the key. */
export const PaymentReleased = declareEvent({
  stream: 'payment',
  time: 'releasedAt',
  versions: { 1: Type.Object({ v: V1, jobId: Text, lostKeyTo: Text, releasedAt: Instant }, strict) },
});
export type PaymentReleased = EventData<typeof PaymentReleased>;

/** A settle call whose answer says neither yes nor no. `cause`: a code, never a text of the facilitator. */
export const SettlementUnknown = declareEvent({
  stream: 'payment',
  time: 'unknownAt',
  versions: { 1: Type.Object({ v: V1, jobId: Text, cause: Text, unknownAt: Instant }, strict) },
});
export type SettlementUnknown = EventData<typeof SettlementUnknown>;

/** A retry's claim, appended before it acts. */
export const SettlementRetried = declareEvent({
  stream: 'payment',
  time: 'retriedAt',
  versions: { 1: Type.Object({ v: V1, jobId: Text, owner: Text, retriedAt: Instant }, strict) },
});
export type SettlementRetried = EventData<typeof SettlementRetried>;

/** The charge was returned in full. `evidence`: the transfer was found on the chain, or the operator stated it. */
export const PaymentRefunded = declareEvent({
  stream: 'payment',
  time: 'refundedAt',
  versions: {
    1: Type.Object(
      {
        v: V1,
        jobId: Text,
        network: Text,
        asset: Text,
        amount: Type.String({ pattern: '^\\d+$' }),
        payer: Text,
        transaction: Type.String({ pattern: '^0x[0-9a-f]{64}$' }),
        evidence: Type.Union([Type.Literal('chain'), Type.Literal('operator')]),
        refundedAt: Instant,
      },
      strict,
    ),
  },
});
export type PaymentRefunded = EventData<typeof PaymentRefunded>;

export const IdempotencyKeyClaimed = declareEvent({
  stream: 'claim',
  time: 'claimedAt',
  versions: {
    1: Type.Object(
      { v: V1, jobId: Text, fingerprint: Hex, paymentStream: Nullable(Text), claimedAt: Instant },
      strict,
    ),
  },
});
export type IdempotencyKeyClaimed = EventData<typeof IdempotencyKeyClaimed>;

export const IdempotencyKeyReleased = declareEvent({
  stream: 'claim',
  time: 'releasedAt',
  versions: {
    1: Type.Object(
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
    ),
  },
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
