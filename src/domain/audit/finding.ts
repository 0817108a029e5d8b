// Audit findings: each is one inconsistency in the record that an honest relay cannot have written.
import type { RecordedEvent } from '../event-codec.ts';
import { type DomainEvent, EVENTS, STREAM } from '../events.ts';
import type { CheckName } from '../receipt/report.ts';

export type FindingKind =
  // Of the log as a whole: order, names and shapes.
  /** Positions do not increase. */
  | 'position_order'
  /** Events are missing from a log that numbers its events consecutively. */
  | 'position_gap'
  | 'event_id_repeated'
  /** Revisions of a stream are missing: events were dropped, or moved behind this one. */
  | 'revision_gap'
  /** The stream already has an event of this revision: one was copied, or two were swapped. */
  | 'revision_repeated'
  /** Unknown type or version, or data that does not fit the type. */
  | 'event_unreadable'
  /** A type that does not belong in a stream of this name. */
  | 'event_misplaced'
  /** The event names another job, decision, payment or key than its stream. */
  | 'stream_mismatch'
  // Of jobs, and of what names them.
  /** It cannot follow the events before it. */
  | 'job_event_impossible'
  /** The completion contradicts the job's attempts. */
  | 'job_completion_mismatch'
  | 'receipt_missing'
  | 'receipt_without_job'
  | 'receipt_repeated'
  /** Two jobs have receipts of one id. */
  | 'receipt_id_repeated'
  /** The event with the receipt contradicts the receipt. */
  | 'receipt_event_mismatch'
  /** The receipt's event chain is right, and its content contradicts the events. */
  | 'receipt_content_mismatch'
  /** Issued long before its job's completion, or long after it. */
  | 'receipt_time_wrong'
  /** A failed check of the receipt verifier; the kind is named after the check. */
  | (typeof RECEIPT_FINDINGS)[CheckName][0]
  /** Another event names a job that the log does not have. */
  | 'job_missing'
  | 'decision_missing'
  | 'decision_mismatch'
  | 'payment_missing'
  | 'payment_mismatch'
  | 'payment_used_twice'
  /** One transaction has paid for two jobs. */
  | 'payment_shared'
  /** The sums of all payments in one asset: charged is not served + refunded + open. */
  | 'claim_missing'
  | 'claim_mismatch'
  | 'payment_event_impossible'
  | 'claim_event_impossible'
  | 'decision_event_impossible'
  | 'key_event_impossible'
  /** The key's id is not the thumbprint of its public key. */
  | 'key_id_mismatch'
  | 'key_secret_differs'
  // Of the transparency log.
  /** A receipt names the transparency log, and the record has no checkpoint of it. */
  | 'checkpoint_missing'
  | 'checkpoint_unreadable'
  | 'checkpoint_signature_invalid'
  /** Signed by a checkpoint key whose compromise was recorded before. */
  | 'checkpoint_key_compromised'
  /** The event contradicts its note. */
  | 'checkpoint_event_mismatch'
  | 'checkpoint_origin_changed'
  | 'checkpoint_shrinks'
  /** Signed a second time over the same leaves. */
  | 'checkpoint_repeated'
  /** Signed long before the preceding checkpoint. */
  | 'checkpoint_time_wrong'
  /** It covers more leaves than precede it in the record. */
  | 'checkpoint_ahead'
  /** The leaves before it have another root than the signed one. */
  | 'checkpoint_root_mismatch'
  | 'receipt_origin_mismatch'
  /** The receipt does not name the transparency log, which began long before. */
  | 'receipt_log_missing'
  // Of an exported file.
  /** The first line names another transparency log than the events do. */
  | 'export_origin_mismatch'
  /** A line that is no event, follows the end line, or is a second end line. */
  | 'export_line_wrong'
  /** The end line's counts differ from the lines before it. */
  | 'export_end_mismatch'
  /** The last line is incomplete, or is no end line. */
  | 'export_cut'
  // Of an auditor's own evidence.
  /** The record has a key that is missing from the trusted key set. */
  | 'key_untrusted'
  /** The trusted key set has a key that is missing from the record. */
  | 'key_missing'
  /** The record lets a key sign earlier or longer than the trusted key set does. */
  | 'key_window_wider'
  | 'kept_checkpoint_signature_invalid'
  /** A checkpoint key of the record has signed it and was compromised: it is compared with the record nevertheless. */
  | 'kept_checkpoint_key_compromised'
  /** It is of another transparency log. */
  | 'kept_checkpoint_origin_mismatch'
  /** The record has fewer leaves than were signed: some were removed, or it is older than the checkpoint. */
  | 'kept_checkpoint_ahead'
  | 'kept_checkpoint_root_mismatch'
  /** It fits the record, which has a larger one but not this: checkpoints are stored before publication, in order of size. */
  | 'kept_checkpoint_unrecorded';

/** The kind of each failed check of the receipt verifier, and what is wrong then. */
export const RECEIPT_FINDINGS = {
  receipt_present: [
    'receipt_id_mismatch',
    'the receipt has another id than its event states, or cannot be read',
  ],
  signature_valid: [
    'receipt_signature_invalid',
    'the receipt was changed, or is not signed by the key that it names',
  ],
  key_valid_at_issue: ['receipt_key_invalid', 'the key was not valid when the receipt was issued'],
  payload_version_supported: [
    'receipt_payload_unreadable',
    'the receipt has a version that this release does not support, or cannot be read',
  ],
  payload_job_id: ['receipt_job_mismatch', 'the receipt names another job'],
  request_commitment_present: ['receipt_commitment_missing', 'the receipt is not bound to a request'],
  response_commitment_present: [
    'receipt_commitment_missing',
    'the receipt is bound to a response that it does not state, or to none that it states',
  ],
  job_present: ['receipt_without_job', 'the job of the receipt is missing'],
  receipt_links_job: ['receipt_job_mismatch', 'the receipt names another job'],
  job_links_receipt: ['receipt_id_mismatch', 'the job names another receipt'],
  status_matches: ['receipt_status_mismatch', 'job and receipt state different outcomes'],
  method_matches: ['receipt_method_mismatch', 'job and receipt state different methods'],
  target_matches: ['receipt_target_mismatch', 'job and receipt are bound to different targets'],
  attempts_match: ['receipt_attempts_mismatch', 'job and receipt state different attempts'],
  decision_matches: ['receipt_decision_mismatch', 'job and receipt state different decisions'],
  payment_matches: ['receipt_payment_mismatch', 'job and receipt state different payments'],
  event_chain_matches: [
    'receipt_chain_mismatch',
    'the recorded history of the job is not the one that was signed',
  ],
  receipt_logged: ['receipt_not_logged', 'the transparency log does not contain the receipt'],
} as const satisfies Record<CheckName, readonly [kind: string, message: string]>;

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

/** The event that a finding is about. */
export type EventLocation = Pick<Finding, 'stream' | 'revision' | 'jobId' | 'position'>;

/** A finding without its location. `message`: without capital letter and full stop. */
export type Fault = { readonly kind: FindingKind; readonly message: string };

/** A fault and its event. */
export type Found = { readonly fault: Fault; readonly location: EventLocation };

/** Of a finding that belongs to no event. */
export const NOWHERE: EventLocation = { stream: null, revision: null, jobId: null, position: null };

export const findingOf = ({ kind, message }: Fault, location: EventLocation): Finding => ({
  kind,
  ...location,
  message: sentence(message),
});

/** Makes a sentence; keeps the case of an id at the start. */
const sentence = (text: string): string =>
  `${/^[a-z]+ /.test(text) ? text.charAt(0).toUpperCase() : text.charAt(0)}${text.slice(1)}.`;

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
  if (typeof named === 'string') return stream === named ? null : misplaced(type);
  if (!stream.startsWith(named(''))) return misplaced(type);
  if (kind === 'payment' || kind === 'claim')
    return /^[0-9a-f]{64}$/.test(stream.slice(named('').length)) ? null : misplaced(type);
  const id =
    kind === 'decision' && 'decisionId' in data ? data.decisionId : 'jobId' in data ? data.jobId : '';
  if (stream === named(id ?? '')) return null;
  return { kind: 'stream_mismatch', message: `the event is of ${id}, and the stream is not` };
}

const misplaced = (type: string): Fault => ({
  kind: 'event_misplaced',
  message: `no ${type} belongs in a stream of this name`,
});
