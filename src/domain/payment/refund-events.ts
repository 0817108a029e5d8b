// Events of refunds: in the payment's stream, and in the stream of the transaction that moves the money back,
// `refund-<network>:<transaction>`.
import { type Static, Type } from '@sinclair/typebox';
import {
  ChainHash,
  declareEvent,
  declareVersions,
  type EventData,
  Instant,
  Nullable,
  oneOf,
  strict,
  Text,
  Units,
  V1,
  V2,
} from '../event-fields.ts';

const PaymentStream = Type.String({ pattern: '^payment-[0-9a-f]{64}$' });

const begun = { jobId: Text, served: Type.Boolean(), begunAt: Instant };
const begun1 = Type.Object({ v: V1, ...begun }, strict);

/**
 * From here on the payment buys nothing, and stays charged until it is refunded or the refund is cancelled. `served`: its
 * call had been made, and the charge is returned nevertheless. `statement`: why the operator began it although the chain
 * gave no usable answer; null: the chain showed the transfer of the charge (version 1: it was not queried), or a refund of
 * it is claimed.
 */
export const RefundBegun = declareVersions({
  stream: 'payment',
  time: 'begunAt',
  versions: {
    1: begun1,
    2: Type.Object({ v: V2, ...begun, statement: Nullable(Text) }, strict),
  },
  upcast: { 1: (recorded: Static<typeof begun1>) => ({ ...recorded, v: 2 as const, statement: null }) },
});
export type RefundBegun = EventData<typeof RefundBegun>;

/** The payment buys its job again. `job_started`: the job had started when the refund began. */
export const RefundCancelled = declareEvent('payment', 'cancelledAt', {
  jobId: Text,
  reason: oneOf('operator', 'job_started'),
  cancelledAt: Instant,
});
export type RefundCancelled = EventData<typeof RefundCancelled>;

/** What one sender transferred to one payer in the transaction, and the payments that it refunds. */
const RefundTransfer = Type.Object(
  {
    asset: Text,
    /** Lower case. */
    sender: Text,
    /** Lower case. */
    payer: Text,
    amount: Units,
    refunds: Type.Array(Type.Object({ payment: PaymentStream, jobId: Text, amount: Units }, strict)),
  },
  strict,
);
export type RefundTransfer = Static<typeof RefundTransfer>;

/**
 * Claims transfers of a transaction for begun refunds, before these are recorded. A later claim of the same transaction
 * adds to the earlier ones.
 */
export const RefundClaimed = declareEvent('refund', 'claimedAt', {
  network: Text,
  transaction: ChainHash,
  transfers: Type.Array(RefundTransfer),
  /** Payments of earlier claims that another transaction has refunded: this one does not. */
  released: Type.Array(PaymentStream),
  claimedAt: Instant,
});
export type RefundClaimed = EventData<typeof RefundClaimed>;

const refunded = {
  jobId: Text,
  network: Text,
  asset: Text,
  amount: Units,
  payer: Text,
  transaction: ChainHash,
  evidence: oneOf('chain', 'operator'),
  refundedAt: Instant,
};

const version1 = Type.Object({ v: V1, ...refunded }, strict);
const version2 = Type.Object({ v: Type.Literal(2), ...refunded, sender: Nullable(Text) }, strict);

/**
 * The charge was returned in full. `evidence`: `operator` in version 1 only, which recorded refunds that the operator
 * stated. `sender`: the wallet that returned it, lower case; null in version 1, which had neither sender nor claim.
 */
export const PaymentRefunded = declareVersions({
  stream: 'payment',
  time: 'refundedAt',
  versions: { 1: version1, 2: version2 },
  upcast: {
    1: (recorded: Static<typeof version1>): Static<typeof version2> => ({ ...recorded, v: 2, sender: null }),
  },
});
export type PaymentRefunded = EventData<typeof PaymentRefunded>;

/** Names the stream of a transaction. */
export const refundId = ({ network, transaction }: Pick<RefundClaimed, 'network' | 'transaction'>): string =>
  `${network}:${transaction}`;
