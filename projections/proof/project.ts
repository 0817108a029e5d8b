import type { JobStarted } from '#src/domain/events/job.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import type { ProofRow } from './table.ts';

export type ProofChange = RowChange<'proofs', ProofRow>;

/** `receiptVerified`: the verdict on this very event, found before. */
export function projectProof(
  event: DomainEvent,
  facts: { readonly receiptVerified: boolean },
): readonly ProofChange[] {
  switch (event.type) {
    case 'JobStarted':
      return [{ table: 'proofs', key: event.data.jobId, apply: (row) => row ?? startedProof(event.data) }];
    case 'AttemptMade': {
      const { jobId, endedAt } = event.data;
      return changeProof(jobId, (row) => ({ ...row, attempts: row.attempts + 1, updatedAt: endedAt }));
    }
    case 'JobCompleted': {
      const { jobId, status, attempts, responseStatus, errorCategory, completedAt } = event.data;
      return changeProof(jobId, (row) => ({
        ...row,
        status,
        attempts,
        responseStatus,
        errorCategory,
        updatedAt: completedAt,
        completedAt,
      }));
    }
    case 'ReceiptSigned': {
      const { jobId, receiptId, signedAt } = event.data;
      const { receiptVerified } = facts;
      return changeProof(jobId, (row) => ({ ...row, receiptId, receiptVerified, updatedAt: signedAt }));
    }
    default:
      return [];
  }
}

function changeProof(key: string, change: (row: ProofRow) => ProofRow): readonly ProofChange[] {
  return [{ table: 'proofs', key, apply: (row) => row && change(row) }];
}

function startedProof(started: JobStarted): ProofRow {
  return {
    jobId: started.jobId,
    receiptId: null,
    status: 'running',
    method: started.method,
    attempts: 0,
    responseStatus: null,
    receiptVerified: false,
    errorCategory: null,
    createdAt: started.startedAt,
    updatedAt: started.startedAt,
    completedAt: null,
  };
}
