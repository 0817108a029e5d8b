// Whether the service's executions need an operator's attention, and why: the one rule for monitoring and trust.

import { CHECKPOINT_WAIT_MS, type CheckpointStatus } from './trust.ts';

export type ExecutionFacts = {
  /** Jobs finished within the window. */
  readonly recentSucceeded: number;
  readonly recentFailed: number;
  /** Jobs running past their lease. */
  readonly overdue: number;
  /** Receipts in store that do not verify. */
  readonly unverifiedReceipts: number;
  /** How far the read models are behind the log. */
  readonly lagMs: number;
  /** Of the transparency log; null: there is none, or it is not known yet. */
  readonly checkpoint: CheckpointStatus | null;
};

/** In the order of the answers. */
export const ATTENTION_REASONS = [
  'failure_rate',
  'overdue_job',
  'unverified_receipt',
  'projection_lag',
  'checkpoint_refused',
  'checkpoint_overdue',
] as const;
export type AttentionReason = (typeof ATTENTION_REASONS)[number];

export const ATTENTION = { failureRate: 0.25, minFinished: 4, lagMs: 30_000 } as const;

/** recentFailed of the finished; 0 where none finished. */
export function failureRate(facts: Pick<ExecutionFacts, 'recentSucceeded' | 'recentFailed'>): number {
  const finished = facts.recentSucceeded + facts.recentFailed;
  return finished === 0 ? 0 : facts.recentFailed / finished;
}

export function attentionReasons(facts: ExecutionFacts): readonly AttentionReason[] {
  const finished = facts.recentSucceeded + facts.recentFailed;
  const reasons: AttentionReason[] = [];
  if (finished >= ATTENTION.minFinished && failureRate(facts) > ATTENTION.failureRate)
    reasons.push('failure_rate');
  if (facts.overdue > 0) reasons.push('overdue_job');
  if (facts.unverifiedReceipts > 0) reasons.push('unverified_receipt');
  if (facts.lagMs > ATTENTION.lagMs) reasons.push('projection_lag');
  const { problem, ageMs } = facts.checkpoint ?? { problem: null, ageMs: 0 };
  if (problem !== null) reasons.push('checkpoint_refused');
  else if (ageMs > CHECKPOINT_WAIT_MS) reasons.push('checkpoint_overdue');
  return reasons;
}

export function executionStatus(facts: ExecutionFacts): 'ok' | 'attention' {
  return attentionReasons(facts).length === 0 ? 'ok' : 'attention';
}
