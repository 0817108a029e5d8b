// Comparisons with the chain in an audit: each against the rounds before it and the payments that it names. Rounds
// are kept for an audit against a node.

import type { EventLocation, Fault } from '#src/domain/audit/finding.ts';
import {
  type ConfirmedPayment,
  orderFault,
  receivedFault,
  roundFaults,
} from '#src/domain/audit/judge-chain.ts';
import type { ChainReconciled } from '#src/domain/events/payment.ts';
import { STREAM } from '#src/domain/events.ts';
import type { Books } from '#src/domain/payment/ledger.ts';
import { accountKey, sumOf } from '#src/domain/payment/reconciliation.ts';
import { absentPayment } from '#src/domain/payment/state.ts';
import type { AuditedRound, StreamStates } from './stream-states.ts';

/** Of one account. `last`: name of the row of its last round that stands. */
type Account = { readonly last: string | null; readonly received: bigint; readonly unattributed: bigint };

export function auditChain(states: StreamStates) {
  const accounts = new Map<string, Account & Pick<ChainReconciled, 'network' | 'asset'>>();
  let comparisons = 0;

  /** The account before a round from this block on: the rounds that it replaces stand no more. */
  function cutBack(account: Account, fromBlock: number): Account & { readonly replaced: number | null } {
    let { last, received, unattributed } = account;
    let replaced: number | null = null;
    for (
      let row = roundOf(last);
      last !== null && row !== null && row.round.toBlock >= fromBlock;
      row = roundOf(last)
    ) {
      states.put('round', last, { ...row, stands: false });
      received -= BigInt(row.round.received);
      unattributed -= sumOf(row.round.unattributed);
      replaced = row.round.fromBlock;
      last = row.before;
    }
    return { last, received, unattributed, replaced };
  }
  const roundOf = (name: string | null): AuditedRound | null =>
    name === null ? null : states.get('round', name);

  function confirmedBy(name: string, hash: string): ConfirmedPayment {
    const row = `confirmed ${hash}`;
    const earlier = states.get('confirmedBy', row);
    const isTaken = earlier !== null && roundOf(earlier)?.stands === true;
    states.put('confirmedBy', row, name);
    const payment = states.get('payment', STREAM.payment(hash))?.payment ?? absentPayment;
    return { hash, payment, isTaken };
  }

  return {
    comparisons: () => comparisons,
    round(round: ChainReconciled, location: EventLocation): readonly Fault[] {
      comparisons++;
      const key = accountKey(round);
      const known = accounts.get(key) ?? { last: null, received: 0n, unattributed: 0n };
      const { last, received, unattributed, replaced } = cutBack(known, round.fromBlock);
      const name = `round ${key} ${location.revision}`;
      const confirmed = round.confirmed.map((hash) => confirmedBy(name, hash));
      const order = orderFault(round, roundOf(last)?.round ?? null, replaced);
      states.put('round', name, { round, location, before: last, stands: true });
      const { network, asset } = round;
      accounts.set(key, {
        network,
        asset,
        last: name,
        received: received + BigInt(round.received),
        unattributed: unattributed + sumOf(round.unattributed),
      });
      return [...(order === null ? [] : [order]), ...roundFaults(round, confirmed)];
    },
    /** At the end of the record. */
    unbalanced(books: Books): readonly Fault[] {
      return books.flatMap((sums) => {
        const its = [...accounts.values()].filter(
          ({ network, asset }) => network === sums.network && asset === sums.asset,
        );
        const received = its.reduce((sum, one) => sum + one.received, 0n);
        const unattributed = its.reduce((sum, one) => sum + one.unattributed, 0n);
        const fault = receivedFault(sums, received, unattributed);
        return fault === null ? [] : [fault];
      });
    },
    /** Rounds that stand, of one account after the other, the newest first. */
    *standing(): Generator<AuditedRound> {
      for (const { last } of accounts.values())
        for (let row = roundOf(last); row !== null; row = roundOf(row.before)) yield row;
    },
    /** The recorded transaction of a payment, by the hash in the name of its stream; null: none. */
    chargeOf(hash: string): string | null {
      const payment = states.get('payment', STREAM.payment(hash))?.payment;
      return payment !== undefined && 'settled' in payment ? payment.settled.transaction : null;
    },
  };
}
