// Audit findings: each is one inconsistency in the record that an honest relay cannot have written.
import type { RecordedEvent } from '../event-codec.ts';
import { type DomainEvent, EVENTS, STREAM } from '../events.ts';
import type { CheckName } from '../receipt/report.ts';

/** Of the log as a whole: order, names and shapes. */
export type LogFindingKind =
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
  | 'stream_mismatch';

export type JobFindingKind =
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
  | ReceiptFindingKind
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
  | 'books_unbalanced'
  | 'claim_missing'
  | 'claim_mismatch';

/** The kind of a failed check: for `signature_valid` it is `receipt_signature_invalid`. */
export type ReceiptFindingKind = (typeof RECEIPT_FINDINGS)[CheckName];

export const RECEIPT_FINDINGS = {
  receipt_present: 'receipt_id_mismatch',
  signature_valid: 'receipt_signature_invalid',
  key_valid_at_issue: 'receipt_key_invalid',
  payload_version_supported: 'receipt_payload_unreadable',
  payload_job_id: 'receipt_job_mismatch',
  request_commitment_present: 'receipt_commitment_missing',
  response_commitment_present: 'receipt_commitment_missing',
  job_present: 'receipt_without_job',
  receipt_links_job: 'receipt_job_mismatch',
  job_links_receipt: 'receipt_id_mismatch',
  status_matches: 'receipt_status_mismatch',
  method_matches: 'receipt_method_mismatch',
  target_matches: 'receipt_target_mismatch',
  attempts_match: 'receipt_attempts_mismatch',
  decision_matches: 'receipt_decision_mismatch',
  payment_matches: 'receipt_payment_mismatch',
  event_chain_matches: 'receipt_chain_mismatch',
  receipt_logged: 'receipt_not_logged',
} as const satisfies Record<CheckName, string>;

/** What is wrong if the check of a receipt fails. */
export const DIFFERENCES: Readonly<Record<CheckName, string>> = {
  receipt_present: 'the receipt has another id than its event states, or cannot be read',
  signature_valid: 'the receipt was changed, or is not signed by the key that it names',
  key_valid_at_issue: 'the key was not valid when the receipt was issued',
  payload_version_supported:
    'the receipt has a version that this release does not support, or cannot be read',
  payload_job_id: 'the receipt names another job',
  request_commitment_present: 'the receipt is not bound to a request',
  response_commitment_present:
    'the receipt is bound to a response that it does not state, or to none that it states',
  job_present: 'the job of the receipt is missing',
  receipt_links_job: 'the receipt names another job',
  job_links_receipt: 'the job names another receipt',
  status_matches: 'job and receipt state different outcomes',
  method_matches: 'job and receipt state different methods',
  target_matches: 'job and receipt are bound to different targets',
  attempts_match: 'job and receipt state different attempts',
  decision_matches: 'job and receipt state different decisions',
  payment_matches: 'job and receipt state different payments',
  event_chain_matches: 'the recorded history of the job is not the one that was signed',
  receipt_logged: 'the transparency log does not contain the receipt',
};

export type OtherFindingKind =
  | 'payment_event_impossible'
  | 'claim_event_impossible'
  | 'decision_event_impossible'
  | 'key_event_impossible'
  /** The key's id is not the thumbprint of its public key. */
  | 'key_id_mismatch'
  | 'key_secret_differs';

export type CheckpointFindingKind =
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
  /** No checkpoint covers it within the promised time. */
  | 'receipt_not_logged';

/** Of an exported file. */
export type ExportFindingKind =
  /** The first line names another transparency log than the events do. */
  | 'export_origin_mismatch'
  /** A line that is no event, follows the end line, or is a second end line. */
  | 'export_line_wrong'
  /** The end line's counts differ from the lines before it. */
  | 'export_end_mismatch'
  /** The last line is incomplete, or is no end line. */
  | 'export_cut';

export type FindingKind =
  | LogFindingKind
  | JobFindingKind
  | OtherFindingKind
  | CheckpointFindingKind
  | ExportFindingKind;

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
