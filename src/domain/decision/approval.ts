// Whether a recorded decision approves a call. For new calls only: what was accepted once is never asked again.
import { type Refused, refused } from '../refusal.ts';
import type { DecisionRecorded } from './events.ts';

export type NotApproved = Refused<
  'decision_not_found' | 'decision_not_approved' | 'decision_expired' | 'decision_action_mismatch'
>;

export type AskedApproval = {
  /** Of the action that is to be executed now. */
  readonly actionHash: string;
  /** Unix ms. */
  readonly nowMs: number;
};

/** null: it approves. `decision` null: there is none of that id. */
export function judgeApproval(
  decision: DecisionRecorded | null,
  { actionHash, nowMs }: AskedApproval,
): NotApproved | null {
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
  return null;
}
