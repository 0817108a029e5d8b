// Transfers to the payee that pay for no payment, as the comparisons with the chain found them.

import { chainAccount } from '#src/domain/events/payment.ts';
import { STREAM } from '#src/domain/events.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { PaymentRow } from './payment-row.ts';
import type { Ledger } from './read-ledger.ts';
import { standingRounds } from './standing-rounds.ts';

/**
 * As a row among payments, `null` where it has no such member. `payer` and `transaction` null: more transfers of one block
 * than an event lists; `amount` is their sum. `since`: time of the last block of the round that found it.
 */
export type TransferRow = Readonly<Record<Exclude<keyof PaymentRow, 'state'>, string | null>> & {
  readonly state: 'unattributed';
  readonly since: string;
  /** Atomic units. */
  readonly amount: string;
  readonly transfers: number;
  readonly block: number;
};

const NO_PAYMENT = {
  id: null,
  state: 'unattributed',
  payer: null,
  nonce: null,
  validBefore: null,
  refundTransaction: null,
  jobId: null,
  reservedAt: null,
  settledAt: null,
  refundBegunAt: null,
  refundedAt: null,
  statedTransaction: null,
} as const;

/** The newest first, for each payee and asset. Throws for an event that it cannot read. */
export async function* unattributedTransfers(
  log: EventLog,
  { comparisons }: Ledger,
): AsyncGenerator<TransferRow> {
  for (const { books } of comparisons.values()) {
    const { network, asset } = books;
    for await (const round of standingRounds(log, STREAM.chain(chainAccount(books)), books))
      for (const { sender: payer, ...row } of round.unattributed.toReversed())
        yield { ...NO_PAYMENT, network, asset, payer, ...row, since: round.blockTime };
  }
}
