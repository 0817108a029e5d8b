// Events of a payment's stream, `payment-<sha256(network:asset:from:nonce)>`, of a key's claim,
// `claim-<HMAC(secret, payer, key)>`, and of the comparison with the chain, `chain-<network>:<payee>`.
import { type Static, Type } from '@sinclair/typebox';
import {
  ChainHash,
  Count,
  declareEvent,
  declareVersions,
  type EventData,
  Hex,
  Instant,
  Nullable,
  oneOf,
  strict,
  Text,
  Units,
} from '../event-fields.ts';

/** Why the operator states the fact, where the chain gave no usable answer (evidence `operator`); null otherwise. */
const Statement = Nullable(Text);
const withoutStatement = <T extends object>(recorded: T) => ({ ...recorded, statement: null });

/** What was signed, and the one job that it may buy. */
const authorized = {
  jobId: Text,
  fingerprint: Hex,
  scheme: Text,
  network: Text,
  asset: Text,
  amount: Units,
  payTo: Text,
  payer: Text,
  nonce: Text,
  /** Unix seconds, decimal. */
  validBefore: Type.String({ pattern: '^\\d+$' }),
  payloadHash: Hex,
  /** The protocol version of the header that brought it first. */
  x402Version: Type.Union([Type.Literal(1), Type.Literal(2)]),
};

export const PaymentReserved = declareEvent('payment', 'reservedAt', {
  ...authorized,
  owner: Text,
  reservedAt: Instant,
});
export type PaymentReserved = EventData<typeof PaymentReserved>;

/** Pledged to a run of a schedule: nothing is settled before a run is due, and it buys nothing but runs of that schedule. */
export const PaymentDeferred = declareEvent('payment', 'deferredAt', {
  ...authorized,
  scheduleId: Text,
  run: Type.Integer({ minimum: 1 }),
  dueAt: Instant,
  deferredAt: Instant,
});
export type PaymentDeferred = EventData<typeof PaymentDeferred>;

const settled = { jobId: Text, transaction: Nullable(Text), settledAt: Instant };

/** `transaction` null: it is not known, as in earlier records of a facilitator that named none. */
export const PaymentSettled = declareVersions(
  'payment',
  'settledAt',
  {
    1: { ...settled, evidence: oneOf('facilitator', 'nonce_consumed', 'chain', 'operator') },
    2: { ...settled, evidence: oneOf('facilitator', 'chain', 'operator'), statement: Statement },
  },
  {
    // In version 1 the facilitator's answer "nonce used" was taken for a settlement where no chain could be queried.
    1: ({ evidence, ...recorded }) => ({
      ...recorded,
      statement: null,
      evidence: evidence === 'nonce_consumed' ? 'facilitator' : evidence,
    }),
  },
);
export type PaymentSettled = EventData<typeof PaymentSettled>;

const rejected = {
  jobId: Text,
  reason: Text,
  evidence: oneOf('facilitator', 'chain', 'operator'),
  rejectedAt: Instant,
};

/** The payment ended without money moving. `reason`: the facilitator's code or `unused_after_expiry`. */
export const PaymentRejected = declareVersions(
  'payment',
  'rejectedAt',
  {
    1: rejected,
    2: { ...rejected, statement: Statement },
  },
  { 1: withoutStatement },
);
export type PaymentRejected = EventData<typeof PaymentRejected>;

const released = { jobId: Text, releasedAt: Instant };

/**
 * Given up before settlement. `reason`: `key_lost` where another job holds the key (`lostKeyTo`), else why the run of a
 * schedule that it was for is not executed.
 */
export const PaymentReleased = declareVersions(
  'payment',
  'releasedAt',
  {
    1: { ...released, lostKeyTo: Text },
    2: { ...released, reason: Text, lostKeyTo: Nullable(Text) },
  },
  { 1: (recorded) => ({ ...recorded, reason: 'key_lost' }) },
);
export type PaymentReleased = EventData<typeof PaymentReleased>;

const unknown = { jobId: Text, cause: Text, unknownAt: Instant };

/**
 * A settle call without a conclusive answer. `cause`: a code, never a text of the facilitator. `transaction`: the hash in
 * its answer, not verified; null if it contains none.
 */
export const SettlementUnknown = declareVersions(
  'payment',
  'unknownAt',
  {
    1: unknown,
    2: { ...unknown, transaction: Nullable(Text) },
  },
  { 1: (recorded) => ({ ...recorded, transaction: null }) },
);
export type SettlementUnknown = EventData<typeof SettlementUnknown>;

/** A retry's claim, appended before it acts. */
export const SettlementRetried = declareEvent('payment', 'retriedAt', {
  jobId: Text,
  owner: Text,
  retriedAt: Instant,
});
export type SettlementRetried = EventData<typeof SettlementRetried>;

/**
 * The books have the charge, and the chain has no transfer of it: the facilitator reported one that did not happen, or a
 * reorganisation removed it. A later PaymentSettled with the chain as its evidence takes this back.
 */
export const PaymentMissing = declareEvent('payment', 'missingAt', {
  jobId: Text,
  /** That the charge names. */
  transaction: Nullable(Text),
  /** What the chain shows of the authorization. */
  finding: oneOf('unused', 'cancelled', 'spent_elsewhere'),
  /** The last block that was searched. */
  upToBlock: Count,
  missingAt: Instant,
});
export type PaymentMissing = EventData<typeof PaymentMissing>;

/**
 * The chain has the transfer of the charge in another transaction than the recorded one, which the facilitator or an
 * operator named. From here on `transaction` is that of the charge.
 */
export const SettlementCorrected = declareEvent('payment', 'correctedAt', {
  jobId: Text,
  /** As recorded until now; null: none was. A receipt that was signed before states it. */
  recorded: Nullable(Text),
  transaction: ChainHash,
  correctedAt: Instant,
});
export type SettlementCorrected = EventData<typeof SettlementCorrected>;

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

/** Transfers that pay for nothing in the books. `transaction` and `sender` null: more of one block than are listed. */
const Unattributed = Type.Object(
  { transaction: Nullable(ChainHash), sender: Nullable(Text), amount: Units, transfers: Count, block: Count },
  strict,
);
export type Unattributed = Static<typeof Unattributed>;

const reconciled = {
  network: Text,
  asset: Text,
  payee: Text,
  fromBlock: Count,
  toBlock: Count,
  /** Of `toBlock`. */
  blockHash: ChainHash,
  /** Time of `toBlock`, by the chain's clock. */
  blockTime: Instant,
  /** Sum and number of the transfers in these blocks. */
  received: Units,
  transfers: Count,
  /** The payments that they pay, by the hash in the name of their streams. */
  confirmed: Type.Array(Hex),
  /** Payments that the round recorded as charged, and as missing. */
  settledFound: Count,
  missing: Count,
  unattributed: Type.Array(Unattributed),
  reconciledAt: Instant,
};

/**
 * The payment streams were compared with all transfers of the asset to the payee in these blocks, inclusive. A round that
 * begins at or before the last block of earlier rounds replaces them: the chain was reorganised, or an operator repeated
 * the comparison.
 */
export const ChainReconciled = declareVersions(
  'chain',
  'reconciledAt',
  {
    1: reconciled,
    // `corrected`: payments whose recorded transaction it corrected.
    2: { ...reconciled, corrected: Count },
  },
  { 1: (recorded) => ({ ...recorded, corrected: 0 }) },
);
export type ChainReconciled = EventData<typeof ChainReconciled>;

/** The CAIP-10 account whose comparison with the chain has a stream. Lower case. */
export const chainAccount = ({ network, payee }: Pick<ChainReconciled, 'network' | 'payee'>): string =>
  `${network}:${payee}`.toLowerCase();
