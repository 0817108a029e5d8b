// Refunds in an audit: what each transaction is claimed for, and that each recorded refund was claimed. The stated transfers
// are kept for an audit against a node.
import type { EventLocation, Fault } from '#src/domain/audit/finding.ts';
import type { StatedRefund } from '#src/domain/audit/judge-chain.ts';
import { claimEnd, judgeClaim, noRefunds, twice, unclaimedFault } from '#src/domain/audit/judge-refund.ts';
import { refundId } from '#src/domain/events/refund.ts';
import { type EventOf, STREAM } from '#src/domain/events.ts';
import type { RefundStated, StreamStates } from './stream-states.ts';

export function auditRefunds(states: StreamStates) {
  let count = 0;

  function keep(refund: StatedRefund, location: EventLocation): void {
    const { network, transaction, amount } = refund;
    const [asset, payer] = [refund.asset.toLowerCase(), refund.payer.toLowerCase()];
    const sender = refund.sender?.toLowerCase() ?? null;
    const stated = { network, transaction, asset, payer, sender, amount, location };
    states.put('stated', `stated ${count++}`, stated);
  }

  const paymentOf = (stream: string) => states.get('payment', stream)?.payment ?? null;

  /** A transaction refunds for one owner only. */
  const shared = (network: string, transaction: string, owner: string): readonly Fault[] =>
    states.otherOwner(`refund ${network} ${transaction}`, owner) === null ? [] : [SHARED];

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
    *stated(): Generator<RefundStated> {
      for (let n = 0; n < count; n++) {
        const stated = states.get('stated', `stated ${n}`);
        if (stated !== null) yield stated;
      }
    },
  };
}

const SHARED: Fault = { kind: 'payment_shared', message: 'its transfer has refunded another payer' };
