// What a verification returns.
import type { Json } from '../canonical-json.ts';
import type { ProofProblem } from '../transparency/tlog-proof.ts';

/** `details`: what was compared. */
export type Check =
  | {
      readonly name: 'signature_valid' | 'request_commitment_present' | 'job_present';
      readonly ok: boolean;
      readonly details?: never;
    }
  | ComparedCheck
  | { readonly name: 'key_valid_at_issue'; readonly ok: boolean; readonly details: KeyDetails }
  | { readonly name: 'payload_version_supported'; readonly ok: boolean; readonly details: VersionDetails }
  | LogCheck
  | WitnessCheck;

export type CheckName = Check['name'];

/** `response_commitment_present` has no details if the payload cannot be read. */
export type ComparedCheck = {
  readonly name:
    | 'receipt_present'
    | 'payload_job_id'
    | 'response_commitment_present'
    | 'receipt_links_job'
    | 'job_links_receipt'
    | 'status_matches'
    | 'method_matches'
    | 'target_matches'
    | 'attempts_match'
    | 'decision_matches'
    | 'payment_matches'
    | 'schedule_matches'
    | 'event_chain_matches';
  readonly ok: boolean;
  readonly details?: { readonly expected: Json; readonly receipt: Json };
};

/** All in Unix seconds. `key` null: the key or the payload is missing. */
export type KeyDetails =
  | {
      readonly iat: number;
      readonly notBefore: number;
      readonly notAfter: number | null;
      readonly compromisedAt: number | null;
    }
  | { readonly iat: number | null; readonly key: null };

/** `receipt`: the version that the payload states; null: none that is a number. */
export type VersionDetails = { readonly supported: readonly number[]; readonly receipt: number | null };

/** Without details if the payload cannot be read. */
export type LogCheck = {
  readonly name: 'receipt_logged';
  readonly ok: boolean;
  readonly details?: LogDetails;
};

/**
 * With a proof that holds, the leaf's `index` (from 0) and the `size` of the log. Without a proof, `dueBy` (Unix seconds), and
 * the problem `future` if the receipt is dated over a day ahead. With a proof that does not hold, its problem.
 */
export type LogDetails =
  | { readonly pending: false; readonly origin: string; readonly index: number; readonly size: number }
  | { readonly pending: boolean; readonly dueBy: number; readonly problem?: 'future' }
  | { readonly pending: false; readonly problem: ProofProblem };

export type WitnessCheck = {
  readonly name: 'receipt_witnessed';
  readonly ok: boolean;
  /** Absent if the payload cannot be read. */
  readonly details?: WitnessDetails;
};

/**
 * `names`: the witnesses of the policy that have cosigned the checkpoint of the proof, and `times` when, as each states it (Unix
 * seconds). `missing`: those of the quorum that have not. `dueBy`: until when (Unix seconds) the
 * quorum may be missing; `pending`: until then it is.
 */
export type WitnessDetails = {
  readonly pending: boolean;
  readonly quorum: boolean;
  readonly names: readonly string[];
  readonly times: readonly number[];
  readonly missing: readonly string[];
  readonly dueBy: number;
  readonly problem?: WitnessProblem;
};

/**
 * `proof`: no proof shows that the receipt is in the log. `log`: no log of the policy has signed the checkpoint. `cosignature`: the
 * signature of a witness does not verify. `unsupported`: too few without ML-DSA-44 signatures, which this runtime cannot verify.
 * `quorum`: too few witnesses have cosigned.
 */
export type WitnessProblem = 'proof' | 'log' | 'cosignature' | 'unsupported' | 'quorum';

export type VerificationReport = {
  readonly ok: boolean;
  readonly receiptId: string | null;
  readonly jobId: string | null;
  readonly keyId: string | null;
  readonly signatureVerified: boolean;
  readonly checks: readonly Check[];
};
