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
} from '../event-fields.ts';

const PaymentStream = Type.String({ pattern: '^payment-[0-9a-f]{64}$' });

const begun = { jobId: Text, served: Type.Boolean(), begunAt: Instant };

/**
 * From here on the payment buys nothing, and stays charged until it is refunded or the refund is cancelled. `served`: its
 * call had been made, and the charge is returned nevertheless. `statement`: why the operator began it although the chain
 * gave no usable answer; null: the chain showed the transfer of the charge (version 1: it was not queried), or a refund of
 * it is claimed.
 */
export const RefundBegun = declareVersions(
  'payment',
  'begunAt',
  {
    1: begun,
    2: { ...begun, statement: Nullable(Text) },
  },
  { 1: (recorded) => ({ ...recorded, statement: null }) },
);
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

/**
 * The charge was returned in full. `evidence`: `operator` in version 1 only, which recorded refunds that the operator
 * stated. `sender`: the wallet that returned it, lower case; null in version 1, which had neither sender nor claim.
 */
export const PaymentRefunded = declareVersions(
  'payment',
  'refundedAt',
  {
    1: refunded,
    2: { ...refunded, sender: Nullable(Text) },
  },
  { 1: (recorded) => ({ ...recorded, sender: null }) },
);
export type PaymentRefunded = EventData<typeof PaymentRefunded>;

/** Names the stream of a transaction. */
export const refundId = ({ network, transaction }: Pick<RefundClaimed, 'network' | 'transaction'>): string =>
  `${network}:${transaction}`;
