// What a verification returns.
import type { Json } from '../canonical-json.ts';

export type CheckName =
  | 'receipt_present'
  | 'signature_valid'
  | 'key_valid_at_issue'
  | 'payload_version_supported'
  | 'payload_job_id'
  | 'request_commitment_present'
  | 'response_commitment_present'
  | 'job_present'
  | 'receipt_links_job'
  | 'job_links_receipt'
  | 'status_matches'
  | 'method_matches'
  | 'target_matches'
  | 'attempts_match'
  | 'decision_matches'
  | 'payment_matches'
  | 'event_chain_matches'
  | 'receipt_logged';

/** `details`: the compared values, if the check compares two. */
export type Check = { readonly name: CheckName; readonly ok: boolean; readonly details?: Json };

export type VerificationReport = {
  readonly ok: boolean;
  readonly receiptId: string | null;
  readonly jobId: string | null;
  readonly keyId: string | null;
  readonly signatureVerified: boolean;
  readonly checks: readonly Check[];
};
