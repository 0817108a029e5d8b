// Payments, claims and decisions in an audit: each stream is checked alone, and against the jobs that name it.

import { type Fault, fault } from '#src/domain/audit/finding.ts';
import {
  booksFault,
  buysNothing,
  claimedFaults,
  claimFault,
  decisionFaults,
  isEnd,
  judgePayment,
  NO_HISTORY,
  paidFaults,
  unpaidFault,
} from '#src/domain/audit/judge-payment.ts';
import { canonicalJson } from '#src/domain/canonical-json.ts';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { JobStarted } from '#src/domain/events/job.ts';
import { identityText } from '#src/domain/events/payment.ts';
import { type ClaimEvent, type EventOf, type PaymentEvent, STREAM } from '#src/domain/events.ts';
import { evolveClaim, freeClaim } from '#src/domain/payment/claim.ts';
import { type Books, enter, evolveEntry } from '#src/domain/payment/ledger.ts';
import { isBound, isCorrected, isMissing } from '#src/domain/payment/state.ts';
import type { StreamStates } from './stream-states.ts';

export function auditMoney(states: StreamStates, from: Books = []) {
  let books = from;

  /** The stream's name is the hash of the authorization's identity, so that an authorization has one stream. */
  function nameFault(stream: string, event: PaymentEvent): Fault | null {
    if (event.type !== 'PaymentReserved' && event.type !== 'PaymentDeferred') return null;
    const hash = toHex(sha256(utf8(identityText(event.data))));
    if (stream === STREAM.payment(hash)) return null;
    return fault('stream_mismatch', `The stream ${stream} is named after another authorization.`);
  }

  function isOver(jobId: string): boolean {
    const known = states.get('job', STREAM.job(jobId));
    return known !== null && (known.job === null || known.job.status === 'completed');
  }

  return {
    payment(stream: string, event: PaymentEvent): readonly Fault[] {
      const before = states.get('payment', stream) ?? NO_HISTORY;
      const { history, fault } = judgePayment(before, event);
      // A job that starts while its payment is put in order is executed or not, by what it reads of it.
      const isInOrder = history.payment.status === 'settled';
      states.put('payment', stream, isInOrder ? { ...history, startedUnpaid: false } : history);
      if (isEnd(event)) states.put('ended', endName(stream, event.data.jobId), true);
      books = enter(books, event, before, history, null);
      return [fault, nameFault(stream, event)].filter((each) => each !== null);
    },
    claim(stream: string, event: ClaimEvent): readonly Fault[] {
      const before = states.get('claim', stream) ?? freeClaim;
      const claim = evolveClaim(before, event);
      states.put('claim', stream, claim);
      const held = claim.status === 'held' ? claim : before;
      const holder = held.status === 'held' ? held.claimed : null;
      if (claim === before || holder === null) {
        const message = `The event ${event.type} cannot follow: ${holder === null ? 'no job' : `job ${holder.jobId}`} holds the idempotency key.`;
        return [fault('claim_event_impossible', message)];
      }
      const { jobId, paymentStream } = holder;
      const history = paymentStream === null ? null : states.get('payment', paymentStream);
      const hasEnded = states.get('ended', endName(paymentStream, jobId)) ?? false;
      const found = claimFault(holder, event, { history, hasEnded, isOver: isOver(jobId) });
      return found === null ? [] : [found];
    },
    decision(
      { stream, data }: RecordedEvent,
      { data: { decisionId, recommendation } }: EventOf<'DecisionRecorded'>,
    ): readonly Fault[] {
      if (states.get('decision', stream) !== null) {
        return [fault('decision_event_impossible', `Decision ${decisionId} has already been recorded.`)];
      }
      const hash = toHex(sha256(utf8(canonicalJson(data))));
      states.put('decision', stream, { hash, recommendation });
      return [];
    },
    /** Contradictions between a job's start and the streams that it names. */
    started(event: EventOf<'JobStarted'>): readonly Fault[] {
      const started = event.data;
      const { jobId, payment, paymentStream, claimStream, decisionId } = started;
      const history = paymentStream === null ? null : states.get('payment', paymentStream);
      const claim = claimStream === null ? null : states.get('claim', claimStream);
      const decision = decisionId === null ? null : states.get('decision', STREAM.decision(decisionId));
      if (paymentStream !== null && history !== null)
        states.put('payment', paymentStream, {
          ...history,
          ...evolveEntry(history, event),
          servedBy: history.servedBy ?? jobId,
          startedUnpaid: buysNothing(history),
        });
      const faults = [
        ...paidFaults(started, history),
        ...claimedFaults(started, claim, history),
        ...decisionFaults(started, decision),
      ];
      if (payment === null || payment.transaction === null) return faults;
      const transaction = `transaction ${payment.network} ${payment.transaction}`.toLowerCase();
      const other = states.otherOwner(transaction, jobId);
      if (other === null) return faults;
      const message = `The transaction of job ${jobId} has already paid for job ${other}, unless a facilitator settles several payments in one.`;
      return [...faults, fault('payment_shared', message)];
    },
    /** Contradictions between a job's end and its payment. */
    completed(event: EventOf<'JobCompleted'>, { payment, paymentStream }: JobStarted): readonly Fault[] {
      if (payment === null) return [];
      const before = (paymentStream === null ? null : states.get('payment', paymentStream)) ?? NO_HISTORY;
      const after = { ...before, ...evolveEntry(before, event) };
      books = enter(books, event, before, after, payment);
      if (paymentStream !== null) states.put('payment', paymentStream, after);
      const fault = unpaidFault(event.data, before);
      return fault === null ? [] : [fault];
    },
    /** At the end of the record: payments that settled without a job, may have settled, are missing, corrected, or in refund. */
    open() {
      const open = {
        unservedPayments: 0,
        unconfirmedPayments: 0,
        missingPayments: 0,
        correctedCharges: 0,
        begunRefunds: 0,
      };
      for (const [, { payment, servedBy }] of states.open('payment', STREAM.payment(''))) {
        if (payment.status === 'refunding') open.begunRefunds++;
        if (isCorrected(payment)) open.correctedCharges++;
        if (isMissing(payment)) open.missingPayments++;
        else if (payment.status === 'settled') open.unservedPayments += servedBy === null ? 1 : 0;
        else if (isBound(payment)) open.unconfirmedPayments++;
      }
      return open;
    },
    books: () => books,
    /** At the end of the record: sums that do not balance. */
    unbalanced: () => books.map(booksFault).filter((fault) => fault !== null),
  };
}

const endName = (paymentStream: string | null, jobId: string) => `end ${paymentStream} ${jobId}`;
