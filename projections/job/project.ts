import type { AttemptMade, JobStarted } from '#src/domain/events/job.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import type { AttemptLogEntry, JobRow } from './table.ts';

export type JobChange = RowChange<'jobs', JobRow>;

/** Only its start makes a job's row: later events of a job that is gone leave it gone. */
export function projectJob(event: DomainEvent): readonly JobChange[] {
  switch (event.type) {
    case 'JobStarted':
      return [{ table: 'jobs', key: event.data.jobId, apply: (row) => row ?? startedJob(event.data) }];
    case 'AttemptMade': {
      const entry = attemptEntry(event.data);
      return changeJob(event.data.jobId, (row) => {
        const attemptLog = [...row.attemptLog, entry];
        return { ...row, attempts: attemptLog.length, attemptLog, updatedAt: entry.completedAt };
      });
    }
    case 'JobCompleted': {
      const { status, attempts, responseStatus, responseCommitment, errorCategory, completedAt } = event.data;
      return changeJob(event.data.jobId, (row) => ({
        ...row,
        status,
        attempts,
        responseStatus,
        responseHash: responseCommitment,
        errorCategory,
        updatedAt: completedAt,
      }));
    }
    case 'ReceiptSigned': {
      const { receiptId, signedAt } = event.data;
      return changeJob(event.data.jobId, (row) => ({ ...row, receiptId, updatedAt: signedAt }));
    }
    case 'PaymentRefunded': {
      const { jobId, transaction, evidence, refundedAt } = event.data;
      const refund = { transaction, verified: evidence === 'chain', refundedAt };
      return changeJob(jobId, (row) => ({ ...row, refund }));
    }
    default:
      return [];
  }
}

function changeJob(key: string, change: (row: JobRow) => JobRow): readonly JobChange[] {
  return [{ table: 'jobs', key, apply: (row) => row && change(row) }];
}

function startedJob(started: JobStarted): JobRow {
  return {
    id: started.jobId,
    status: 'running',
    method: started.method,
    mode: started.mode,
    attempts: 0,
    attemptLog: [],
    targetCommitment: started.commitments.target_url,
    requestHash: started.commitments.request_body_sha256,
    responseStatus: null,
    responseHash: null,
    errorCategory: null,
    decisionId: started.decisionId,
    receiptId: null,
    payment: started.payment,
    refund: null,
    createdAt: started.startedAt,
    updatedAt: started.startedAt,
  };
}

function attemptEntry(attempt: AttemptMade): AttemptLogEntry {
  const { number, startedAt, endedAt, phase, sent, status, errorCategory, reason, timings } = attempt;
  return { number, startedAt, completedAt: endedAt, phase, sent, status, errorCategory, reason, timings };
}
