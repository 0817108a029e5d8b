// Finds the payment of each transfer to the payee, by the name of its stream, and records the charge that the books lack.

import type { Unattributed } from '#src/domain/events/payment.ts';
import type { PaymentEvent } from '#src/domain/events.ts';
import {
  type ChainAccount,
  type ChainTransfer,
  judgeTransfer,
  listUnattributed,
  streamOfTransfer,
  type TransferVerdict,
} from '#src/domain/payment/reconciliation.ts';
import type { Payment } from '#src/domain/payment/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import { decide, type JournalDeps, PAYMENT } from '#src/usecases/process/stream.ts';

export type SettledTransfers = {
  readonly received: bigint;
  readonly transfers: number;
  /** Streams of the payments that are paid, in the order of the chain. */
  readonly confirmed: readonly string[];
  /** Of these, the ones that the books did not have as charged. */
  readonly settled: readonly string[];
  /** Of these, the ones that the books had with another transaction; not those that they had without one. */
  readonly corrected: readonly string[];
  readonly unattributed: readonly Unattributed[];
};

/** `isOvertaken`: whether another process has ended a round meanwhile. */
type ReadTransfers = {
  readonly account: ChainAccount;
  readonly transfers: readonly ChainTransfer[];
  isOvertaken(): Promise<boolean>;
};

/** Appends PaymentSettled and SettlementCorrected where needed; the same transfers again append nothing more. */
export async function settleTransfers(
  deps: JournalDeps,
  { account, transfers, isOvertaken }: ReadTransfers,
): Promise<SettledTransfers> {
  const confirmed = new Set<string>();
  const settled: string[] = [];
  const corrected: string[] = [];
  const unattributed: ChainTransfer[] = [];
  for (const transfer of transfers) {
    const stream = streamOfTransfer(account, transfer);
    const isPaid = stream !== null && !confirmed.has(stream);
    const outcome = isPaid
      ? await settleTransfer(deps, { account, transfer, stream, isOvertaken })
      : 'unattributed';
    if (outcome === 'unattributed' || stream === null) unattributed.push(transfer);
    else confirmed.add(stream);
    if (outcome === 'settles' && stream !== null) settled.push(stream);
    if (outcome === 'corrects' && stream !== null) corrected.push(stream);
  }
  return {
    received: transfers.reduce((sum, { amount }) => sum + amount, 0n),
    transfers: transfers.length,
    confirmed: [...confirmed],
    settled,
    corrected,
    unattributed: listUnattributed(unattributed),
  };
}

type Paid = Pick<ReadTransfers, 'account' | 'isOvertaken'> & {
  readonly transfer: ChainTransfer;
  readonly stream: string;
};

async function settleTransfer(
  deps: JournalDeps,
  { account, transfer, stream, isOvertaken }: Paid,
): Promise<TransferVerdict['kind']> {
  const { answer } = await decide<Payment, PaymentEvent, TransferVerdict['kind']>(
    deps,
    PAYMENT,
    stream,
    async ({ state }) => {
      const verdict = judgeTransfer(state, account, transfer, isoNow(deps));
      if (verdict.kind !== 'settles' && verdict.kind !== 'corrects')
        return { events: [], answer: verdict.kind };
      // After a reorganisation the transaction may be an old one. The round is not recorded then, whatever it found.
      if (verdict.kind === 'corrects' && (await isOvertaken())) return { events: [], answer: 'confirmed' };
      const isAdded = verdict.kind === 'corrects' && verdict.event.data.recorded === null;
      return { events: [verdict.event], answer: isAdded ? 'confirmed' : verdict.kind };
    },
  );
  return answer;
}
