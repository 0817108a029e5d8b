import type { DecisionRecorded } from '#src/domain/events/decision.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import type { DecisionRow } from './table.ts';

export type DecisionChange = RowChange<'decisions', DecisionRow>;

/** `receiptVerified`: the verdict on this very event, found before. */
export function projectDecision(
  event: DomainEvent,
  facts: { readonly receiptVerified: boolean },
): readonly DecisionChange[] {
  switch (event.type) {
    case 'DecisionRecorded': {
      const { data } = event;
      return [{ table: 'decisions', key: data.decisionId, apply: (row) => row ?? recorded(data) }];
    }
    case 'JobStarted': {
      const { decisionId, jobId } = event.data;
      return change(decisionId, (row) => ({ ...row, ...NOT_EXECUTED, outcomeStatus: 'running', jobId }));
    }
    case 'JobCompleted': {
      const { decisionId, jobId, status, attempts, responseStatus, errorCategory } = event.data;
      const outcome = { outcomeStatus: status, attempts, responseStatus, errorCategory };
      return change(decisionId, (row) => (row.jobId === jobId ? { ...row, ...outcome } : row));
    }
    case 'ReceiptSigned': {
      const { decisionId, jobId, receiptId } = event.data;
      const outcome = { receiptId, receiptVerified: facts.receiptVerified };
      return change(decisionId, (row) => (row.jobId === jobId ? { ...row, ...outcome } : row));
    }
    default:
      return [];
  }
}

/** Only its own event makes a decision's row: a job that names another one makes none. */
function change(key: string | null, apply: (row: DecisionRow) => DecisionRow): readonly DecisionChange[] {
  return key === null ? [] : [{ table: 'decisions', key, apply: (row) => row && apply(row) }];
}

const NOT_EXECUTED = {
  outcomeStatus: 'pending_execution',
  jobId: null,
  receiptId: null,
  receiptVerified: false,
  responseStatus: null,
  errorCategory: null,
  attempts: 0,
} as const;

function recorded(decision: DecisionRecorded): DecisionRow {
  const { price, network, payTo, trustScore, recentFailureRate, policyVerdict } = decision.facts;
  return {
    decisionId: decision.decisionId,
    recommendation: decision.recommendation,
    confidence: decision.confidence,
    blockingIssues: decision.blockingIssues,
    warnings: decision.warnings,
    reasons: decision.reasons,
    actionHash: decision.actionHash,
    policyHash: decision.policyHash,
    facts: { price, network, payTo, trustScore, recentFailureRate, policyVerdict },
    createdAt: decision.createdAt,
    expiresAt: decision.expiresAt,
    ...NOT_EXECUTED,
  };
}
