// Finds the payment of each transfer to the payee, by the name of its stream, and records the charge that the books lack.

import type { Unattributed } from '#src/domain/payment/events.ts';
import {
  accountKey,
  type ChainAccount,
  type ChainTransfer,
  judgeTransfer,
  listUnattributed,
  streamOfTransfer,
} from '#src/domain/payment/reconciliation.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import { appendPayment, type JournalDeps, loadPayment } from '#src/usecases/event-streams.ts';
import type { Ledger } from '#src/usecases/payments/read-ledger.ts';

export type SettledTransfers = {
  readonly received: bigint;
  readonly transfers: number;
  /** Streams of the payments that are paid, in the order of the chain. */
  readonly confirmed: readonly string[];
  /** Of these, the ones that the books did not have as charged. */
  readonly settled: readonly string[];
  readonly unattributed: readonly Unattributed[];
};

/** Appends PaymentSettled where needed; called again with the same transfers, it appends nothing more. */
export async function settleTransfers(
  deps: JournalDeps,
  ledger: Pick<Ledger, 'unconfirmed'>,
  account: ChainAccount,
  transfers: readonly ChainTransfer[],
): Promise<SettledTransfers> {
  const confirmed = new Set<string>();
  const settled: string[] = [];
  const unattributed: ChainTransfer[] = [];
  for (const transfer of transfers) {
    const stream = streamOfTransfer(account, transfer);
    const isPaid = stream !== null && !confirmed.has(stream);
    const outcome = isPaid
      ? await settleTransfer(deps, ledger, { account, transfer, stream })
      : 'unattributed';
    if (outcome === 'unattributed' || stream === null) unattributed.push(transfer);
    else confirmed.add(stream);
    if (outcome === 'settled' && stream !== null) settled.push(stream);
  }
  return {
    received: transfers.reduce((sum, { amount }) => sum + amount, 0n),
    transfers: transfers.length,
    confirmed: [...confirmed],
    settled,
    unattributed: listUnattributed(unattributed),
  };
}

type Paid = { readonly account: ChainAccount; readonly transfer: ChainTransfer; readonly stream: string };

async function settleTransfer(
  deps: JournalDeps,
  { unconfirmed }: Pick<Ledger, 'unconfirmed'>,
  { account, transfer, stream }: Paid,
): Promise<'confirmed' | 'settled' | 'unattributed'> {
  const known = unconfirmed.get(stream);
  if (known?.amount === transfer.amount && accountKey(known.account) === accountKey(account))
    return 'confirmed';
  for (;;) {
    const view = await loadPayment(deps.log, stream);
    const at = new Date(deps.clock.now()).toISOString();
    const verdict = judgeTransfer(view.state, account, transfer, at);
    if (verdict.kind !== 'settles') return verdict.kind;
    try {
      await appendPayment(deps, view, verdict.event);
      return 'settled';
    } catch (error) {
      if (!(error instanceof WrongExpectedVersion)) throw error;
    }
  }
}
