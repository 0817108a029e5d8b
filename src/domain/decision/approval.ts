// Whether a recorded decision approves a call, and the hashes by which its parts are identified without disclosing them.
// Hashes are lower-case hex of 32 bytes.

import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import type { NormalRequest } from '#src/domain/job/webhook-request.ts';
import { canonicalJson, type JsonObject } from '../canonical-json.ts';
import type { DecisionRecorded } from '../events/decision.ts';
import { ALLOWED, type Allowed, type Refused, refused } from '../refusal.ts';
import type { BuyerPolicy } from './requests.ts';

export type NotApproved = Refused<
  'decision_not_found' | 'decision_not_approved' | 'decision_expired' | 'decision_action_mismatch'
>;

export type AskedApproval = {
  /** Of the action that is to be executed now. */
  readonly actionHash: string;
  /** Unix ms. */
  readonly nowMs: number;
};

/** `decision` null: there is none of that id. */
export function judgeApproval(
  decision: DecisionRecorded | null,
  { actionHash, nowMs }: AskedApproval,
): Allowed | NotApproved {
  if (decision === null) return refused('decision_not_found', 'There is no decision of this id.');
  if (decision.recommendation !== 'pay_and_execute') {
    return refused('decision_not_approved', 'The decision does not recommend to pay and execute.');
  }
  // Said so that a date which cannot be read has expired.
  if (!(nowMs < Date.parse(decision.expiresAt))) {
    return refused('decision_expired', 'The decision has expired: ask for another one.');
  }
  if (decision.actionHash !== actionHash) {
    const message = 'The action is not the one that was decided on: every field of it counts.';
    return refused('decision_action_mismatch', message);
  }
  return ALLOWED;
}

/** HMAC under the secret that never leaves; labels keep its uses apart. */
type KeyedHash = { mac(label: string, text: string): Uint8Array };

/** Every field of the action counts. Keyed, so that no log is an oracle for guessing URLs, headers and bodies. */
export function actionHash({ body, ...rest }: NormalRequest, keyed: KeyedHash): string {
  return toHex(keyed.mac('action', canonicalJson({ ...rest, ...(body === undefined ? {} : { body }) })));
}

/** SHA-256 of JCS (RFC 8785). */
export const policyHash = (policy: BuyerPolicy): string => jcsHash({ ...policy });

/** SHA-256 of JCS of DecisionRecorded's data as recorded: what a receipt names its decision by. */
export const decisionHash = (recorded: JsonObject): string => jcsHash(recorded);

const jcsHash = (value: JsonObject) => toHex(sha256(utf8(canonicalJson(value))));
