// The verifier's checks in plain words, for people who see them the first time.
import type { DisclosureProblem } from './open-disclosures.ts';
import type { CheckName } from './verify.ts';

export const CHECK_WORDS: Readonly<Record<CheckName, string>> = {
  receipt_present: 'There is a receipt, and it is the requested one',
  signature_valid: 'It is signed by a key of the relay, and nothing in it was changed',
  key_valid_at_issue: 'The key was valid when the receipt was issued',
  payload_version_supported: 'The receipt has a version that this verifier supports',
  payload_job_id: 'It belongs to the requested job',
  request_commitment_present: 'It is bound to one request (target, headers, body)',
  response_commitment_present: 'It is bound to the response that came, and to none that did not',
  job_present: 'The job is at hand',
  receipt_links_job: 'The receipt names the job',
  job_links_receipt: 'The job names the receipt',
  status_matches: 'Job and receipt state the same outcome',
  method_matches: 'Job and receipt state the same method',
  target_matches: 'Job and receipt are bound to the same target',
  attempts_match: 'Job and receipt state the same attempts',
  decision_matches: 'Job and receipt state the same decision',
  payment_matches: 'Job and receipt state the same payment',
  event_chain_matches: 'The recorded history of the job is the one that was signed',
  receipt_logged: 'It is in the transparency log, or its time to be there is not over',
};

/** Of disclosures that were given beside such a receipt. */
export const NOT_OPENED = 'Not opened: nothing vouches for disclosures where the receipt does not verify.';

/** Said after the name of what was to be opened. */
export const DISCLOSURE_WORDS: Readonly<Record<DisclosureProblem, string>> = {
  malformed: 'is no disclosure',
  not_committed: 'is not what this receipt commits to: a changed value, or of another receipt',
  misplaced: 'belongs to another place of the receipt',
  repeated: 'opens a name that was opened before',
};
