// Transfers to the payee that pay for no payment, as the comparisons with the chain found them.
import { STREAM } from '#src/domain/events.ts';
import { chainAccount } from '#src/domain/payment/events.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { PaymentRow } from './payment-row.ts';
import type { Ledger } from './read-ledger.ts';
import { standingRounds } from './standing-rounds.ts';

export type UnattributedTransfer = {
  readonly network: string;
  readonly asset: string;
  /** null: more transfers of one block than an event lists; `amount` is their sum. */
  readonly sender: string | null;
  readonly transaction: string | null;
  /** Atomic units. */
  readonly amount: string;
  readonly transfers: number;
  readonly block: number;
  /** Time of the last block of the round that found it. */
  readonly since: string;
};

/** The newest first, for each payee and asset. Throws for an event that it cannot read. */
export async function* unattributedTransfers(
  log: EventLog,
  { comparisons }: Ledger,
): AsyncGenerator<UnattributedTransfer> {
  for (const { books } of comparisons.values()) {
    const { network, asset } = books;
    for await (const round of standingRounds(log, STREAM.chain(chainAccount(books)), books))
      for (const row of round.unattributed.toReversed())
        yield { network, asset, ...row, since: round.blockTime };
  }
}

/** As a row among payments: `null` where it has no such member. */
export type TransferRow = Readonly<Record<Exclude<keyof PaymentRow, 'state'>, string | null>> & {
  readonly state: 'unattributed';
  readonly since: string;
  readonly amount: string;
  readonly transfers: number;
  readonly block: number;
};

export function transferRow(transfer: UnattributedTransfer): TransferRow {
  const { sender, ...row } = transfer;
  return {
    id: null,
    state: 'unattributed',
    payer: sender,
    nonce: null,
    validBefore: null,
    refundTransaction: null,
    jobId: null,
    reservedAt: null,
    settledAt: null,
    refundBegunAt: null,
    refundedAt: null,
    statedTransaction: null,
    ...row,
  };
}
