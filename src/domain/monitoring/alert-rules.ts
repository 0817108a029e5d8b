// Whether the service's executions need an operator's attention, and why: the one rule for monitoring and trust.

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
};

export type AttentionReason = 'failure_rate' | 'overdue_job' | 'unverified_receipt' | 'projection_lag';

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
  return reasons;
}

export function executionStatus(facts: ExecutionFacts): 'ok' | 'attention' {
  return attentionReasons(facts).length === 0 ? 'ok' : 'attention';
}
