// The payments that need an operator's attention: one read of the whole event log.

import { type OpenState, openState } from '#src/domain/payment/ledger.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { readLedger } from './read-ledger.ts';

type ListPaymentsDeps = { readonly log: EventLog; readonly clock: Pick<Clock, 'now'> };

export type OpenPayment = {
  /** Name of the payment's stream. */
  readonly id: string;
  readonly state: OpenState;
  readonly payer: string;
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  /** Atomic units. */
  readonly amount: string;
  /** null: none yet, or its hash could not be determined. */
  readonly transaction: string | null;
  readonly jobId: string;
  readonly since: string;
};

/** Open payments, the longest open first. Keeps only these in memory. Throws for an event that it cannot read. */
export async function listPayments(
  { log, clock }: ListPaymentsDeps,
  states: ReadonlySet<OpenState>,
): Promise<readonly OpenPayment[]> {
  const { entries } = await readLedger(log);
  const rows: OpenPayment[] = [];
  for (const [id, entry] of entries) {
    const { payment, since } = entry;
    const state = openState(entry, clock.now());
    if (state === null || !states.has(state) || payment.status === 'absent') continue;
    const { payer, network, asset, amount, jobId } = payment.reserved;
    const transaction = 'settled' in payment ? payment.settled.transaction : null;
    rows.push({ id, state, payer, network, asset, amount, transaction, jobId, since });
  }
  return rows.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}
