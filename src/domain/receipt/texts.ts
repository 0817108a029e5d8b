// A receipt and its checks as text, for people who see them for the first time.
import { iso } from '../../lib/iso.ts';
import type { ProofProblem } from '../transparency/tlog-proof.ts';
import type { DisclosureProblem } from './disclosures.ts';
import { type ReceiptPayload, runOf } from './payload.ts';
import type { Check, CheckName, LogDetails, WitnessCheck, WitnessProblem } from './report.ts';

export const CHECK_LABELS: Readonly<Record<CheckName, string>> = {
  receipt_present: 'There is a receipt, and it is the requested one',
  signature_valid: 'It is signed by a key of the relay, and nothing in it was changed',
  key_valid_at_issue: 'The key was valid when the receipt was issued',
  payload_version_supported: 'The receipt has a version that this verifier supports',
  payload_job_id: 'It belongs to the requested job',
  request_commitment_present: 'It is bound to one request (target, headers, body)',
  response_commitment_present: 'It is bound to the response if there was one, and to none otherwise',
  job_present: 'The job is available',
  receipt_links_job: 'The receipt names the job',
  job_links_receipt: 'The job names the receipt',
  status_matches: 'Job and receipt state the same outcome',
  method_matches: 'Job and receipt state the same method',
  target_matches: 'Job and receipt are bound to the same target',
  attempts_match: 'Job and receipt state the same attempts',
  decision_matches: 'Job and receipt state the same decision',
  payment_matches: 'Job and receipt state the same payment',
  schedule_matches: 'Job and receipt state the same run of a schedule',
  event_chain_matches: 'The recorded history of the job is the one that was signed',
  receipt_logged: 'It is in the transparency log, or not yet due there',
  receipt_witnessed: 'A quorum of the witnesses has cosigned the log with it',
};

/** `ok`: the relay's statement. `verified`: checked by the reader. `unchecked`: it was not possible, or its input was missing. */
export type CheckState = 'running' | 'ok' | 'verified' | 'failed' | 'pending' | 'unchecked';

/** A row of a table of checks. */
export type CheckRow = {
  readonly state: CheckState;
  readonly label: string;
  /** null: it is no check of the report. */
  readonly name: CheckName | null;
  /** A second line: the reason or the details. */
  readonly more: string | null;
};

/** `holds`: the state of a check that holds. */
export function checkRow(check: Check, holds: 'ok' | 'verified'): CheckRow & Pick<Check, 'name'> {
  const { name, ok } = check;
  const label = CHECK_LABELS[name];
  if (check.name === 'receipt_logged') {
    const state = check.details?.pending === true ? 'pending' : holds;
    return { state: ok ? state : 'failed', label, name, more: logText(check.details) };
  }
  if (check.name === 'receipt_witnessed') {
    const state = check.details?.pending === true ? 'pending' : holds;
    return { state: ok ? state : 'failed', label, name, more: witnessText(check) };
  }
  if (ok) return { state: holds, label, name, more: null };
  return {
    state: 'failed',
    label,
    name,
    more: check.details === undefined ? null : partsText(check.details),
  };
}

/** How many of these checks hold, and how many could not be made. A check whose time has not come yet holds. */
export function countText(states: readonly CheckState[]): string {
  const held = states.filter((state) => ['ok', 'verified', 'pending'].includes(state)).length;
  const unchecked = states.filter((state) => state === 'unchecked').length;
  const rest = unchecked === 0 ? '' : `, ${unchecked} ${unchecked === 1 ? 'was' : 'were'} not checked`;
  return `${held} of ${states.length} checks hold${rest}`;
}

const LOG_PROBLEMS: Readonly<Record<ProofProblem | 'future', string>> = {
  future: 'It is not in the log, and its date is more than a day ahead of this clock.',
  malformed: 'The given text is no proof file.',
  checkpoint: 'No checkpoint key of the key set has signed the checkpoint of the proof.',
  origin: 'The proof is of another log than the one that the receipt names.',
  inclusion: 'The receipt is not at the index that the proof states.',
};

function logText(details: LogDetails | undefined): string {
  if (details === undefined) return 'There is no receipt.';
  if ('index' in details)
    return `Index ${details.index} in the first ${details.size} entries of ${details.origin}.`;
  if (details.problem !== undefined) return LOG_PROBLEMS[details.problem];
  const due = iso(details.dueBy * 1000);
  return details.pending
    ? `Not yet; it is due by ${due}. That is no error.`
    : `It is late: it was due by ${due}.`;
}

const WITNESS_PROBLEMS: Readonly<Record<WitnessProblem, string>> = {
  proof: 'There is no proof that the receipt is in the log.',
  log: 'No log of the policy has signed the checkpoint.',
  cosignature: 'The cosignature of a witness does not verify.',
  unsupported: 'ML-DSA-44 signatures cannot be verified here, and too few others have cosigned.',
  quorum: 'Too few witnesses have cosigned.',
};

/** Who has cosigned and when, who has not, and what is wrong. */
export function witnessText({ ok, details }: Pick<WitnessCheck, 'ok' | 'details'>): string {
  if (details === undefined) return 'There is no receipt.';
  const { pending, names, times, missing, dueBy, problem } = details;
  const cosigned = names.map((name, at) => `${name} at ${witnessTime(times[at] ?? 0)}`);
  const parts = [
    ...(cosigned.length === 0 ? [] : [`Cosigned by ${cosigned.join(', ')}.`]),
    ...(missing.length === 0 ? [] : [`Not by ${missing.join(', ')}.`]),
  ];
  const due = witnessTime(dueBy);
  if (pending && ok) return [`Not yet; it is due by ${due}. That is no error.`, ...parts].join(' ');
  const problems = problem === undefined ? [] : [WITNESS_PROBLEMS[problem]];
  const again = pending ? [`It is due by ${due}: obtain the proof again until then.`] : [];
  return [...problems, ...parts, ...again].join(' ');
}

/** Unix seconds, possibly beyond the range of a Date. */
export const witnessTime = (seconds: number): string =>
  seconds > 8.64e12 ? `${seconds} s after 1970` : iso(seconds * 1000);

/** Each member of the object with its value. */
const partsText = (object: object): string =>
  Object.entries(object)
    .map(([name, value]) => `${wordsOf(name)}: ${valueText(value)}`)
    .join('; ');

/** `notBefore` as `not before`. */
const wordsOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function valueText(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(valueText).join(', ');
  if (typeof value !== 'object') return String(value);
  return `(${partsText(value) || 'nothing'})`;
}

/** How the call ended, as a verified receipt states it. */
export const outcomeText = (payload: ReceiptPayload): string =>
  `The call that it records ${payload.outcome.status}: ${statementOf(payload).answer}.`;

/** Shown instead of disclosures if the receipt does not verify. */
export const NOT_OPENED = 'Not opened: disclosures prove nothing if the receipt does not verify.';

/** Follows the name of the disclosure in a sentence. */
export const DISCLOSURE_PROBLEMS: Readonly<Record<DisclosureProblem, string>> = {
  malformed: 'is no disclosure',
  not_committed: 'is not what this receipt commits to: its value was changed, or it is of another receipt',
  misplaced: 'belongs to another place of the receipt',
  repeated: 'opens a name that was opened before',
};

export type Statement = {
  readonly answer: string;
  readonly payment: string;
};

/** Of a receipt that verifies; null: it is of no schedule. */
export function runText(payload: ReceiptPayload): string | null {
  const run = runOf(payload);
  if (run === null) return null;
  return `run ${run.run} of ${run.id}, due ${run.dueAt}, ${run.lateByMs} ms late`;
}

/** Show it only if the receipt verifies: readers would take unsigned text beside a failure for facts. */
export function statementOf({ mode, outcome, payment }: ReceiptPayload): Statement {
  const { responseStatus, errorCategory, truncated } = outcome;
  const end = truncated === 'unknown' ? ', perhaps cut off' : '';
  return {
    answer: responseStatus === null ? (errorCategory ?? 'no answer') : `answer ${responseStatus}${end}`,
    payment:
      payment === null
        ? `none (${mode} mode)`
        : `${payment.amount} of ${payment.asset} on ${payment.network}`,
  };
}
