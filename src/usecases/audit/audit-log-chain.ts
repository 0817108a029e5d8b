// What the record says of the chain: comparisons, each against the rounds before it and the payments that it names, and
// refunds. Rounds and transfers are kept for an audit against a node.
import { type EventLocation, type Fault, fault } from '#src/domain/audit/finding.ts';
import {
  type ChargedPayment,
  type ConfirmedPayment,
  orderFault,
  receivedFault,
  roundFaults,
  type StatedRefund,
} from '#src/domain/audit/judge-chain.ts';
import { claimEnd, judgeClaim, noRefunds, twice, unclaimedFault } from '#src/domain/audit/judge-refund.ts';
import type { ChainReconciled } from '#src/domain/events/payment.ts';
import { refundId } from '#src/domain/events/refund.ts';
import { type EventOf, STREAM } from '#src/domain/events.ts';
import type { Books } from '#src/domain/payment/ledger.ts';
import { accountKey, hashOfStream, sumOf } from '#src/domain/payment/reconciliation.ts';
import { absentPayment } from '#src/domain/payment/state.ts';
import { type AuditedRound, ordinal, type RefundStated, type StreamStates } from './stream-states.ts';

/** Of one account. `last`: name of the row of its last round that stands. */
type Account = { readonly last: string | null; readonly received: bigint; readonly unattributed: bigint };
type KnownAccount = Account & Pick<ChainReconciled, 'network' | 'asset'>;

export type ChainFold = {
  readonly comparisons: number;
  readonly accounts: readonly (readonly [key: string, KnownAccount])[];
};

export function auditChain(states: StreamStates, from: ChainFold | undefined) {
  const accounts = new Map<string, KnownAccount>(from?.accounts);
  let comparisons = from?.comparisons ?? 0;

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
      for (const hash of row.round.confirmed) setOver(STREAM.payment(hash), false);
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
    setOver(STREAM.payment(hash), true);
    const payment = states.get('payment', STREAM.payment(hash))?.payment ?? absentPayment;
    return { hash, payment, isTaken };
  }

  function setOver(stream: string, isOver: boolean): void {
    const known = states.get('charge', chargeName(stream));
    if (known !== null) states.put('charge', chargeName(stream), { stream, isOver });
  }
  const chargeIn = (stream: string) => {
    const payment = states.get('payment', stream)?.payment;
    return payment !== undefined && 'settled' in payment ? payment.settled : null;
  };

  return {
    comparisons: () => comparisons,
    fold: (): ChainFold => ({ comparisons, accounts: [...accounts] }),
    /** `apply` changes the payment: a charge that is new, or in another transaction, is not compared yet. */
    following<T>(stream: string, apply: () => T): T {
      const before = chargeIn(stream);
      const result = apply();
      const after = chargeIn(stream);
      if (after === null || before?.transaction === after.transaction) return result;
      states.put('charge', chargeName(stream), { stream, isOver: false });
      const name = states.get('confirmedBy', `confirmed ${hashOfStream(stream)}`);
      const row = roundOf(name);
      if (name !== null && row !== null) states.put('round', name, { ...row, isCompared: false });
      return result;
    },
    round(round: ChainReconciled, location: EventLocation): readonly Fault[] {
      comparisons++;
      const key = accountKey(round);
      const known = accounts.get(key) ?? { last: null, received: 0n, unattributed: 0n };
      const { last, received, unattributed, replaced } = cutBack(known, round.fromBlock);
      const name = roundName(key, location);
      const confirmed = round.confirmed.map((hash) => confirmedBy(name, hash));
      const order = orderFault(round, roundOf(last)?.round ?? null, replaced);
      states.put('round', name, { round, location, before: last, stands: true, isCompared: false });
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
        const found = [...accounts.values()].filter(
          ({ network, asset }) => network === sums.network && asset === sums.asset,
        );
        const received = found.reduce((sum, one) => sum + one.received, 0n);
        const unattributed = found.reduce((sum, one) => sum + one.unattributed, 0n);
        const fault = receivedFault(sums, received, unattributed);
        return fault === null ? [] : [fault];
      });
    },
    /** Rounds that stand and are not compared with the chain yet, of one account after the other, the oldest first. */
    *standing(): Generator<AuditedRound> {
      for (const [, row] of states.open('round', 'round ')) yield row;
    },
    /** Charges that no round that stands has confirmed, and that are not compared yet. */
    *unconfirmed(): Generator<{ readonly stream: string; readonly payment: ChargedPayment }> {
      for (const [, { stream }] of states.open('charge', 'charge ')) {
        const payment = states.get('payment', stream)?.payment;
        if (payment === undefined || !('settled' in payment)) continue;
        const confirmed = `confirmed ${hashOfStream(stream)}`;
        if (roundOf(states.get('confirmedBy', confirmed))?.stands !== true) yield { stream, payment };
      }
    },
    /** The chain has what it states. */
    compared: {
      round: (row: AuditedRound): void =>
        states.put('round', roundName(accountKey(row.round), row.location), { ...row, isCompared: true }),
      charge: (stream: string): void => setOver(stream, true),
    },
    /** The recorded transaction of a payment, by the hash in the name of its stream; null: none. */
    chargeOf(hash: string): string | null {
      const payment = states.get('payment', STREAM.payment(hash))?.payment;
      return payment !== undefined && 'settled' in payment ? payment.settled.transaction : null;
    },
  };
}

const chargeName = (stream: string): string => `charge ${stream}`;
const roundName = (key: string, { revision }: EventLocation): string =>
  `round ${key} ${ordinal(revision ?? '')}`;

// ── refunds: what each transaction is claimed for ───────────────────────────────────────────────────

export function auditRefunds(states: StreamStates, from = 0) {
  let count = from;

  function keep(refund: StatedRefund, location: EventLocation): void {
    const { network, transaction, amount } = refund;
    const [asset, payer] = [refund.asset.toLowerCase(), refund.payer.toLowerCase()];
    const sender = refund.sender?.toLowerCase() ?? null;
    const stated = { network, transaction, asset, payer, sender, amount, location };
    states.put('stated', statedName(count++), { ...stated, isCompared: false });
  }

  const paymentOf = (stream: string) => states.get('payment', stream)?.payment ?? null;

  /** A transaction refunds for one owner only. */
  const shared = (network: string, transaction: string, owner: string): readonly Fault[] =>
    states.otherOwner(`refund ${network} ${transaction}`, owner) === null ? [] : [sharedFault(transaction)];

  return {
    count: () => count,
    claimed(stream: string, event: EventOf<'RefundClaimed'>, location: EventLocation): readonly Fault[] {
      const { network, transaction, transfers } = event.data;
      for (const transfer of transfers) keep({ ...event.data, ...transfer }, location);
      const before = states.get('refund', stream) ?? noRefunds(transaction);
      const { history, faults } = judgeClaim(before, event, paymentOf);
      states.put('refund', stream, history);
      return [...faults, ...shared(network, transaction, 'claims')];
    },
    /**
     * A transaction refunds what was claimed of it. Version 1 had no claims: there a transaction refunds one payer in one
     * asset, who may have several payments.
     */
    recorded(stream: string, event: EventOf<'PaymentRefunded'>, location: EventLocation): readonly Fault[] {
      const { network, asset, payer, transaction, sender } = event.data;
      if (sender === null) keep(event.data, location);
      const faults = shared(network, transaction, sender === null ? `${asset} ${payer}` : 'claims');
      if (faults.length > 0) return faults;
      const claims = states.get('refund', STREAM.refund(refundId({ network, transaction })));
      const unclaimed = unclaimedFault(stream, event, claims);
      return unclaimed === null ? [] : [unclaimed];
    },
    /** At the end: claims that are void, each of a payment that another transaction refunded, or is claimed for too. */
    *void(): Generator<Fault> {
      const unrecorded = new Map<string, string>();
      for (const claims of states.all('refund'))
        for (const allocation of claims.allocations) {
          const { payment: stream } = allocation;
          const end = claimEnd(claims, allocation, paymentOf(stream));
          const other = unrecorded.get(stream);
          if (typeof end === 'object') yield end;
          else if (end === 'recorded') continue;
          else if (other !== undefined) yield twice(stream, claims.transaction, other);
          else unrecorded.set(stream, claims.transaction);
        }
    },
    /** Those that are not compared with the chain yet. */
    stated: () => states.open('stated', 'stated '),
    /** The chain has it. `name`: of its row. */
    compared: (name: string, stated: RefundStated): void =>
      states.put('stated', name, { ...stated, isCompared: true }),
  };
}

const statedName = (number: number): string => `stated ${ordinal(number)}`;

const sharedFault = (transaction: string): Fault =>
  fault('payment_shared', `The transfer of transaction ${transaction} has refunded another payer.`);
