// Payments, claims and decisions in an audit: each stream is checked alone, and against the jobs that name it.

import type { EventLocation, Fault } from '#src/domain/audit/finding.ts';
import {
  type ClaimFacts,
  claimedFaults,
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
import { freeClaim } from '#src/domain/payment/claim.ts';
import { identityText } from '#src/domain/payment/events.ts';
import { evolveEntry } from '#src/domain/payment/ledger.ts';
import type { StreamStates } from './stream-states.ts';
import type { UniqueValues } from './unique-values.ts';

export function auditMoney(states: StreamStates, unique: UniqueValues) {
  /** Open payments: settled without a job, and of unknown outcome. */
  const open = { unserved: 0, unconfirmed: 0 };

  function putPayment(stream: string, before: PaymentHistory, after: PaymentHistory): void {
    const [was, is] = [openOf(before), openOf(after)];
    if (was !== null) open[was]--;
    if (is !== null) open[is]++;
    states.put('payment', stream, after);
  }

  /** The stream's name is the hash of the authorization's identity, so that an authorization has one stream. */
  function nameFault(stream: string, event: PaymentEvent): Fault | null {
    if (event.type !== 'PaymentReserved') return null;
    const hash = toHex(sha256(utf8(identityText(event.data))));
    if (stream === STREAM.payment(hash)) return null;
    return { kind: 'stream_mismatch', message: 'the stream is named after another authorization' };
  }

  function addUnique(stream: string, event: PaymentEvent, location: EventLocation): void {
    if (event.type === 'PaymentReserved') {
      const { network, asset, payer, nonce } = event.data;
      unique.add('authorization', [network, asset, payer, nonce].join(' ').toLowerCase(), stream, location);
    } else if (event.type === 'PaymentRefunded') {
      const { network, asset, payer, transaction } = event.data;
      unique.add('refund', `${network} ${transaction}`, `${asset} ${payer}`, location);
    }
  }

  /** A payment released because another job holds its key: that job must have claimed the key. */
  function winnerFault(event: PaymentEvent): Fault | null {
    if (event.type !== 'PaymentReleased' || states.get('claimed', STREAM.job(event.data.lostKeyTo)))
      return null;
    const message = `${event.data.lostKeyTo} holds the key, and the log does not have its claim`;
    return { kind: 'claim_missing', message };
  }

  function jobOf(jobId: string): ClaimFacts['job'] {
    const known = states.get('job', STREAM.job(jobId));
    return known === 'over' ? 'completed' : (known?.job.status ?? 'absent');
  }

  return {
    open: open as Readonly<typeof open>,
    payment(stream: string, event: PaymentEvent, location: EventLocation): readonly Fault[] {
      const before = states.get('payment', stream) ?? NO_HISTORY;
      const { history, faults } = judgePayment(before, event);
      putPayment(stream, before, history);
      addUnique(stream, event, location);
      const others = [winnerFault(event), nameFault(stream, event)];
      return [...faults, ...others.filter((fault) => fault !== null)];
    },
    claim(stream: string, event: ClaimEvent): readonly Fault[] {
      const before = states.get('claim', stream) ?? freeClaim;
      const named =
        event.type === 'IdempotencyKeyClaimed'
          ? event.data
          : before.status === 'held'
            ? before.claimed
            : null;
      const paymentStream = named?.paymentStream ?? null;
      const payment = paymentStream === null ? null : states.get('payment', paymentStream);
      const { claim, faults } = judgeClaim(before, event, { payment, job: jobOf(event.data.jobId) });
      states.put('claim', stream, claim);
      if (event.type === 'IdempotencyKeyClaimed') states.put('claimed', STREAM.job(event.data.jobId), true);
      return faults;
    },
    decision(
      { stream, data }: RecordedEvent,
      { data: { recommendation } }: EventOf<'DecisionRecorded'>,
    ): readonly Fault[] {
      if (states.get('decision', stream) !== null) {
        return [{ kind: 'decision_event_impossible', message: 'a decision is recorded once' }];
      }
      const hash = toHex(sha256(utf8(canonicalJson(data))));
      states.put('decision', stream, { hash, recommendation });
      return [];
    },
    /** Contradictions between a job's start and the streams that it names. */
    started(event: EventOf<'JobStarted'>, location: EventLocation): readonly Fault[] {
      const started = event.data;
      const { jobId, payment, paymentStream, claimStream, decisionId } = started;
      const history = paymentStream === null ? null : states.get('payment', paymentStream);
      const claim = claimStream === null ? null : states.get('claim', claimStream);
      const decision = decisionId === null ? null : states.get('decision', STREAM.decision(decisionId));
      if (payment !== null && payment.transaction !== null) {
        const name = `${payment.network} ${payment.transaction}`.toLowerCase();
        unique.add('transaction', name, jobId, location);
      }
      if (paymentStream !== null && history !== null)
        putPayment(paymentStream, history, {
          ...history,
          ...evolveEntry(history, event),
          servedBy: history.servedBy ?? jobId,
          startedRefunded: history.payment.status === 'refunded',
        });
      return [
        ...paidFaults(started, history),
        ...claimedFaults(started, claim),
        ...decisionFaults(started, decision),
      ];
    },
    /** Contradictions between a job's end and its payment. */
    completed(event: EventOf<'JobCompleted'>, { payment, paymentStream }: JobStarted): readonly Fault[] {
      if (payment === null) return [];
      const before = (paymentStream === null ? null : states.get('payment', paymentStream)) ?? NO_HISTORY;
      const after = { ...before, ...evolveEntry(before, event) };
      if (paymentStream !== null) putPayment(paymentStream, before, after);
      const fault = refundedFault(event.data, before);
      return fault === null ? [] : [fault];
    },
  };
}

function openOf({ payment: { status }, servedBy }: PaymentHistory): 'unserved' | 'unconfirmed' | null {
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
