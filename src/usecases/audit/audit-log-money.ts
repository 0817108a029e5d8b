// Payments, claims and decisions in an audit: each stream is checked alone, and against the jobs that name it.

import type { Fault } from '#src/domain/audit/finding.ts';
import {
  booksFault,
  type ClaimFacts,
  claimedFaults,
  type DecisionFacts,
  decisionFaults,
  judgeClaim,
  judgePayment,
  NO_HISTORY,
  type PaymentHistory,
  paidFaults,
  refundedFault,
} from '#src/domain/audit/judge-payment.ts';
import { canonicalJson } from '#src/domain/canonical-json.ts';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type ClaimEvent, type EventOf, type PaymentEvent, STREAM } from '#src/domain/events.ts';
import type { JobStarted } from '#src/domain/job/events.ts';
import { type Claim, freeClaim } from '#src/domain/payment/claim.ts';
import { identityText } from '#src/domain/payment/events.ts';
import { type Books, enter, evolveEntry } from '#src/domain/payment/ledger.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

type MoneyAudit = {
  payment(stream: string, event: PaymentEvent): readonly Fault[];
  /** `jobOf`: a job's status. */
  claim(stream: string, event: ClaimEvent, jobOf: (jobId: string) => ClaimFacts['job']): readonly Fault[];
  decision(recorded: RecordedEvent, event: EventOf<'DecisionRecorded'>): readonly Fault[];
  /** Contradictions between a job's start and the streams that it names. */
  started(event: EventOf<'JobStarted'>): readonly Fault[];
  /** Contradictions between a job's end and its payment. */
  completed(event: EventOf<'JobCompleted'>, started: JobStarted): readonly Fault[];
  /** At the end of the record: sums that do not balance. */
  unbalanced(): readonly Fault[];
  /** Open payments: settled without a job, and of unknown outcome. */
  readonly open: Readonly<Record<Open, number>>;
};

type Open = 'unserved' | 'unconfirmed';

export function auditMoney(scratch: AuditScratch): MoneyAudit {
  const payments = scratch.table<PaymentHistory>('payment');
  /** The stream of an authorization, by its identity on the chain. */
  const authorizations = scratch.table<string>('authorization');
  /** The job that a transaction of the chain has paid for. */
  const transactions = scratch.table<string>('transaction');
  /** Asset and payer of a refund's transfer. */
  const refunds = scratch.table<string>('refund');
  const claims = scratch.table<Claim>('claim');
  /** Jobs that ever held a key. */
  const claimants = scratch.table<string>('claimant');
  const decisions = scratch.table<DecisionFacts>('decision');
  const open = { unserved: 0, unconfirmed: 0 };
  let books: Books = [];

  function putPayment(stream: string, before: PaymentHistory, after: PaymentHistory): void {
    const [was, is] = [openOf(before), openOf(after)];
    if (was !== null) open[was]--;
    if (is !== null) open[is]++;
    payments.put(stream, after);
  }

  /** An authorization moves money at most once, so it has one stream. */
  function twinFault(stream: string, event: PaymentEvent): Fault | null {
    if (event.type !== 'PaymentReserved') return null;
    const { network, asset, payer, nonce } = event.data;
    const name = [network, asset, payer, nonce].join(' ').toLowerCase();
    const known = authorizations.get(name);
    if (known === null) authorizations.put(name, stream);
    if (known === null || known === stream) return null;
    return { kind: 'payment_used_twice', message: `the same authorization is reserved in ${known}` };
  }

  /** The stream's name is the hash of the authorization's identity, so that an authorization has one stream. */
  function nameFault(stream: string, event: PaymentEvent): Fault | null {
    if (event.type !== 'PaymentReserved') return null;
    const hash = toHex(sha256(utf8(identityText(event.data))));
    if (stream === STREAM.payment(hash)) return null;
    return { kind: 'stream_mismatch', message: 'the stream is named after another authorization' };
  }

  function sharedFaults({ jobId, payment }: JobStarted): readonly Fault[] {
    if (payment === null || payment.transaction === null) return [];
    const { network, transaction } = payment;
    const name = `${network} ${transaction}`.toLowerCase();
    const known = transactions.get(name);
    if (known === null) transactions.put(name, jobId);
    if (known === null || known === jobId) return [];
    return [
      {
        kind: 'payment_shared',
        message: `the transaction ${transaction} has paid for ${known} already, unless a facilitator settles several payments in one`,
      },
    ];
  }

  /** A transfer refunds payments of one payer only. */
  function refundFault(event: PaymentEvent): Fault | null {
    if (event.type !== 'PaymentRefunded') return null;
    const { network, asset, payer, transaction } = event.data;
    const [name, to] = [`${network} ${transaction}`, `${asset} ${payer}`];
    const known = refunds.get(name);
    if (known === null) refunds.put(name, to);
    if (known === null || known === to) return null;
    return { kind: 'payment_shared', message: `the transfer ${transaction} has refunded another payer` };
  }

  /** A payment released because another job holds its key: that job must have claimed the key. */
  function winnerFault(event: PaymentEvent): Fault | null {
    if (event.type !== 'PaymentReleased' || claimants.get(event.data.lostKeyTo) !== null) return null;
    const message = `${event.data.lostKeyTo} holds the key, and the log does not have its claim`;
    return { kind: 'claim_missing', message };
  }

  return {
    open,
    payment(stream, event) {
      const before = payments.get(stream) ?? NO_HISTORY;
      const { history, faults } = judgePayment(before, event);
      books = enter(books, event, before, history, null);
      putPayment(stream, before, history);
      const others = [
        winnerFault(event),
        refundFault(event),
        twinFault(stream, event),
        nameFault(stream, event),
      ];
      return [...faults, ...others.filter((fault) => fault !== null)];
    },
    claim(stream, event, jobOf) {
      const before = claims.get(stream) ?? freeClaim;
      const named =
        event.type === 'IdempotencyKeyClaimed'
          ? event.data
          : before.status === 'held'
            ? before.claimed
            : null;
      const paymentStream = named?.paymentStream ?? null;
      const payment = paymentStream === null ? null : payments.get(paymentStream);
      const { claim, faults } = judgeClaim(before, event, { payment, job: jobOf(event.data.jobId) });
      claims.put(stream, claim);
      if (event.type === 'IdempotencyKeyClaimed') claimants.put(event.data.jobId, stream);
      return faults;
    },
    decision({ data }, { data: { decisionId, recommendation } }) {
      if (decisions.get(decisionId) !== null) {
        return [{ kind: 'decision_event_impossible', message: 'a decision is recorded once' }];
      }
      const hash = toHex(sha256(utf8(canonicalJson(data))));
      decisions.put(decisionId, { hash, recommendation });
      return [];
    },
    started(event) {
      const started = event.data;
      const { jobId, paymentStream, claimStream, decisionId } = started;
      const history = paymentStream === null ? null : payments.get(paymentStream);
      const claim = claimStream === null ? null : claims.get(claimStream);
      const decision = decisionId === null ? null : decisions.get(decisionId);
      if (paymentStream !== null && history !== null)
        putPayment(paymentStream, history, {
          ...history,
          ...evolveEntry(history, event),
          servedBy: history.servedBy ?? jobId,
          startedRefunded: history.payment.status === 'refunded',
        });
      return [
        ...paidFaults(started, history),
        ...sharedFaults(started),
        ...claimedFaults(started, claim),
        ...decisionFaults(started, decision),
      ];
    },
    completed(event, { payment, paymentStream }) {
      if (payment === null) return [];
      const before = (paymentStream === null ? null : payments.get(paymentStream)) ?? NO_HISTORY;
      const after = { ...before, ...evolveEntry(before, event) };
      books = enter(books, event, before, after, payment);
      if (paymentStream !== null) putPayment(paymentStream, before, after);
      const fault = refundedFault(event.data, before);
      return fault === null ? [] : [fault];
    },
    unbalanced: () => books.map(booksFault).filter((fault) => fault !== null),
  };
}

function openOf({ payment: { status }, servedBy }: PaymentHistory): Open | null {
  switch (status) {
    case 'settled':
      return servedBy === null ? 'unserved' : null;
    case 'reserved':
    case 'unknown':
    case 'retried':
      return 'unconfirmed';
    case 'absent':
    case 'refunded':
    case 'rejected':
    case 'released':
      return null;
    default:
      return status satisfies never;
  }
}
