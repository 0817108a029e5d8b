// Audit findings: each is one inconsistency in the record that an honest relay cannot have written.
import { DAMAGE_CAUSE, type Damage, damagedCount, damagedPlace } from '../damage.ts';
import type { RecordedEvent } from '../event-codec.ts';
import { chainAccount } from '../events/payment.ts';
import { refundId } from '../events/refund.ts';
import { type DomainEvent, EVENTS, STREAM } from '../events.ts';

export type FindingKind =
  // Of the log as a whole: order, names and shapes.
  /** Positions do not increase. */
  | 'position_order'
  /** Events are missing from a log that numbers its events consecutively. */
  | 'position_gap'
  /** Revisions of a stream are missing: events were dropped, or moved behind this one. */
  | 'revision_gap'
  /** The stream has reached this revision before: one event was copied, or two were swapped. */
  | 'revision_repeated'
  /** An event, or all of a range of positions, cannot be read as it was written. */
  | 'event_damaged'
  /** The log's reads of its stream do not find the event. */
  | 'event_unindexed'
  /** What the storage engine's own check of its files reports. */
  | 'storage_damaged'
  /** Two events have one id. */
  | 'event_id_repeated'
  /** Data that does not fit the type, or a version that no release has. */
  | 'event_unreadable'
  /** Written by a newer release: no inconsistency. From the first such event on, only order, ids and damage are audited. */
  | 'event_of_newer_release'
  /** A type that does not belong in a stream of this name. */
  | 'event_misplaced'
  /** The event names another job, decision, payment or key than its stream. */
  | 'stream_mismatch'
  // Of jobs, and of what they name. `impossible`: it cannot follow the events before it.
  | 'job_event_impossible'
  | 'receipt_missing'
  | 'receipt_without_job'
  | 'receipt_repeated'
  /** Two jobs have receipts of one id. */
  | 'receipt_id_repeated'
  | 'receipt_unreadable'
  | 'receipt_signature_invalid'
  | 'receipt_key_invalid'
  /** It is not bound to one request and its response. */
  | 'receipt_commitment_missing'
  /** The recorded history of the job is not the one that was signed. */
  | 'receipt_chain_mismatch'
  /** The receipt's content contradicts the events of its job. */
  | 'receipt_content_mismatch'
  /** The event with the receipt contradicts the receipt. */
  | 'receipt_event_mismatch'
  | 'decision_missing'
  | 'decision_mismatch'
  | 'decision_event_impossible'
  | 'payment_missing'
  | 'payment_mismatch'
  | 'payment_used_twice'
  /** One transaction has paid for two jobs, or refunded two payers. */
  | 'payment_shared'
  /** The sums of all payments in one asset: charged is not served + refunded + open. */
  | 'books_unbalanced'
  | 'payment_event_impossible'
  /** The claims of a transaction contradict each other. */
  | 'refund_event_impossible'
  /** More is refunded by a transfer than it moved. */
  | 'refund_exceeds_transfer'
  /** A refund is recorded whose transaction was not claimed for it. */
  | 'refund_unclaimed'
  /** Two transactions are claimed for the refund of one payment. */
  | 'payment_claimed_twice'
  | 'claim_missing'
  | 'claim_mismatch'
  | 'claim_event_impossible'
  | 'schedule_event_impossible'
  /** The job names a run of a schedule that was not started with it. */
  | 'schedule_mismatch'
  // Of comparisons with the chain.
  /** Its blocks do not follow those of the rounds before it. */
  | 'chain_event_impossible'
  /** Its sums differ from the payments that it names. */
  | 'chain_event_mismatch'
  /** The chain has another block than the one that was compared. Only with a node. */
  | 'chain_block_mismatch'
  /** The chain has other transfers in the compared blocks. Only with a node. */
  | 'chain_transfers_mismatch'
  /** The chain has the transfer of a confirmed charge in another transaction than the recorded one. Only with a node. */
  | 'charge_transaction_mismatch'
  /** The chain has no transfer of a charge, whether the books have found it missing or not. Only with a node. */
  | 'charge_not_on_chain'
  /** The chain has no such transfer of a refund. Only with a node. */
  | 'refund_not_on_chain'
  // Of keys.
  | 'key_event_impossible'
  /** The key's id is not the thumbprint of its public key. */
  | 'key_id_mismatch'
  /** The auditor's own key set does not contain it. */
  | 'key_untrusted'
  /** The record does not contain a key of that set. */
  | 'key_missing'
  // Of the transparency log.
  | 'checkpoint_unreadable'
  | 'checkpoint_signature_invalid'
  /** The event contradicts its note. */
  | 'checkpoint_event_mismatch'
  | 'checkpoint_origin_changed'
  | 'checkpoint_shrinks'
  /** It covers what the checkpoint before it covers: a relay without new leaves signs none. */
  | 'checkpoint_repeated'
  /** It covers more leaves than precede it in the record. */
  | 'checkpoint_ahead'
  /** The leaves before it have another root than the signed one. */
  | 'checkpoint_root_mismatch'
  /** A cosigned checkpoint is none of those recorded before it, or a cosignature is not as the event states. */
  | 'cosigned_checkpoint_mismatch'
  /** The cosignature of a witness of the auditor's policy does not verify. Only with a policy. */
  | 'cosignature_invalid'
  /** The receipt promises to be in another transparency log than the record's. */
  | 'receipt_origin_mismatch'
  /** It promises its inclusion so late that no verifier waits for it. */
  | 'receipt_promise_late'
  /** No checkpoint covers it, and receipts were issued after its promised time. */
  | 'receipt_not_logged'
  // Of an exported file.
  /** A line that is no event, or that follows the end line. */
  | 'export_line_wrong'
  /** The end line's counts differ from the lines before it. */
  | 'export_end_mismatch'
  /** The head line names another transparency log than the checkpoints. */
  | 'export_origin_mismatch'
  /** The last line is incomplete, or is no end line. */
  | 'export_cut'
  // Of a checkpoint that the auditor kept.
  | 'kept_checkpoint_signature_invalid'
  /** It is of another transparency log. */
  | 'kept_checkpoint_origin_mismatch'
  /** The record has fewer leaves than were signed: some were removed, or it is older than the checkpoint. */
  | 'kept_checkpoint_ahead'
  | 'kept_checkpoint_root_mismatch'
  /** A key that was compromised later signed it, and no checkpoint that was kept from before then covers it. */
  | 'receipt_date_unproven';

export type Finding = {
  /** Stable, for programs. */
  readonly kind: FindingKind;
  /** The stream in which it was found; null if it belongs to no single stream. */
  readonly stream: string | null;
  /** Decimal. */
  readonly revision: string | null;
  readonly jobId: string | null;
  readonly position: string | null;
  /** A sentence for people. */
  readonly message: string;
};

export type EventLocation = Pick<Finding, 'stream' | 'revision' | 'jobId' | 'position'>;

/** A finding without its location. `message`: whole sentences. */
export type Fault = { readonly kind: FindingKind; readonly message: string };

export const fault = (kind: FindingKind, message: string): Fault => ({ kind, message });

export type Found = { readonly fault: Fault; readonly location: EventLocation };

/** Of a finding that belongs to no event. */
export const NOWHERE: EventLocation = { stream: null, revision: null, jobId: null, position: null };

export const findingOf = ({ kind, message }: Fault, location: EventLocation): Finding => ({
  kind,
  ...location,
  message,
});

/** Finding of what an event log, or an export of it, lists as damaged. */
export function damageFinding(damage: Damage): Finding {
  const { from, to, stream, revision, problem } = damage;
  const kind = 'event_damaged';
  const jobId = stream === null ? null : jobOfStream(stream);
  const location = { stream, revision, jobId, position: from };
  const subject =
    from === to
      ? `The event at ${damagedPlace(damage)} is damaged`
      : `The ${damagedCount(damage)} events at ${damagedPlace(damage)} are damaged`;
  return findingOf({ kind, message: `${subject}: ${DAMAGE_CAUSE[problem]}.` }, location);
}

const JOB = STREAM.job('');

/** The job's id, from the name of its stream; null for other streams. */
export const jobOfStream = (stream: string): string | null =>
  stream.startsWith(JOB) ? stream.slice(JOB.length) : null;

/** `jobId`: from the name of a job's stream; for other streams, the job that the event names. */
export function locationOf({ stream, revision, position, data }: RecordedEvent): EventLocation {
  const named = typeof data.jobId === 'string' ? data.jobId : null;
  const jobId = jobOfStream(stream) ?? named;
  return { stream, revision: String(revision), jobId, position };
}

/** The fault of an event in the wrong stream; null if it belongs there. */
export function streamFault({ type, data }: DomainEvent, stream: string): Fault | null {
  const kind = EVENTS[type].stream;
  const named = STREAM[kind];
  if (typeof named === 'string') return stream === named ? null : misplaced(type, stream);
  if (!stream.startsWith(named(''))) return misplaced(type, stream);
  if (kind === 'payment' || kind === 'claim')
    return /^[0-9a-f]{64}$/.test(stream.slice(named('').length)) ? null : misplaced(type, stream);
  const id = idOf(data);
  if (stream === named(id ?? '')) return null;
  return fault(
    'stream_mismatch',
    `The event names ${id}, but the stream ${stream} is named after another id.`,
  );
}

/** That the stream of the event is named after. */
function idOf(data: DomainEvent['data']): string | null {
  if ('payee' in data) return chainAccount(data);
  if ('released' in data) return refundId(data);
  if ('scheduleId' in data) return data.scheduleId;
  if ('decisionId' in data && !('jobId' in data)) return data.decisionId;
  return 'jobId' in data ? data.jobId : '';
}

const misplaced = (type: string, stream: string): Fault =>
  fault('event_misplaced', `An event of type ${type} does not belong in the stream ${stream}.`);
