// Refunds as a test makes them: through the use cases, with transfers that it names.
import type { FoundTransfers, Transfer } from '#src/domain/payment/refund.ts';
import type { Payments } from '#src/ports/payments.ts';
import { beginPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { type Completed, completeRefunds } from '#src/usecases/payments/complete-refund.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { hex, paymentReserved, T0 } from './given-events.ts';

export const REFUND_TX = `0x${hex('e')}`;
const { network, asset, payTo, payer } = paymentReserved().data;

/** To the payer of the sample payment, unless changed. */
export const transferOf = (amount: bigint, changes: Partial<Transfer> = {}): Transfer => ({
  asset: asset.toLowerCase(),
  sender: payTo,
  recipient: payer,
  amount,
  ...changes,
});

/** A transaction on the network of the sample payment. */
export const transactionOf = (...transfers: readonly Transfer[]): FoundTransfers => ({
  outcome: 'found',
  network,
  atSeconds: Math.floor(T0 / 1000) + 1,
  transfers,
});

/** The chain shows the transfer of each charge. */
export const paidOnChain: Payments['lookUp'] = async (_payment, options) => ({
  outcome: 'paid',
  transaction: options?.transaction ?? `0x${hex('1')}`,
});

export const begin = (
  deps: JournalDeps,
  id: string,
  {
    includeServed = false,
    statement = null,
    lookUp = paidOnChain,
    findTransfers = async () => transactionOf(),
  }: {
    includeServed?: boolean;
    statement?: string | null;
    lookUp?: Payments['lookUp'];
    findTransfers?: (transaction: string) => Promise<FoundTransfers>;
  } = {},
) => beginPaymentRefund({ ...deps, lookUp, findTransfers }, id, { includeServed, statement });

export const complete = (
  deps: JournalDeps,
  found: FoundTransfers = transactionOf(transferOf(3000n)),
  transaction = REFUND_TX,
): Promise<Completed> =>
  completeRefunds(deps, { transaction, refundFrom: null, findTransfers: async () => found });

/** Both steps, for one payment of the sample amount by the sample payer. Throws if it is not recorded. */
export async function refund(
  deps: JournalDeps,
  id: string,
  { transaction = REFUND_TX, includeServed = false } = {},
): Promise<void> {
  const begun = await begin(deps, id, { includeServed });
  if (begun.outcome !== 'begun') throw new Error(JSON.stringify(begun));
  const completed = await complete(deps, undefined, transaction);
  if (completed.outcome !== 'completed' || !completed.refunds.some(({ payment }) => payment === id))
    throw new Error(JSON.stringify(completed));
}
