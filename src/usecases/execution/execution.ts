// What an execution answers, whatever way it came to be: fresh, replayed, resumed or closed after an interruption.
import type { ErrorCategory, Method, Mode, PaymentFacts } from '#src/domain/event-fields.ts';
import type { CompletedJob } from '#src/domain/job/state.ts';

export type Execution = {
  readonly mode: Mode;
  /** true: the stored result of an earlier job; nothing was sent and nothing charged for this call. */
  readonly replay: boolean;
  readonly job: {
    readonly id: string;
    readonly status: 'succeeded' | 'failed';
    readonly method: Method;
    readonly attempts: number;
    readonly decisionId: string | null;
    readonly responseStatus: number | null;
    readonly errorCategory: ErrorCategory | null;
    readonly createdAt: string;
    readonly completedAt: string;
  };
  readonly receipt: { readonly id: string; readonly keyId: string; readonly jws: string };
  readonly payment: PaymentFacts | null;
  /** For the payer only: opens the salted commitments of the receipt. */
  readonly disclosures: readonly string[];
  /** Position of the job's last event: links work once the read models have reached it. */
  readonly position: string;
};

export function executionOf(
  job: CompletedJob,
  answer: Pick<Execution, 'replay' | 'disclosures' | 'position'>,
): Execution {
  const { started, completed, receipt } = job;
  if (receipt === null) throw new Error('a completed job has its receipt in the same append');
  return {
    mode: started.mode,
    job: {
      id: started.jobId,
      status: completed.status,
      method: started.method,
      attempts: completed.attempts,
      decisionId: completed.decisionId,
      responseStatus: completed.responseStatus,
      errorCategory: completed.errorCategory,
      createdAt: started.startedAt,
      completedAt: completed.completedAt,
    },
    receipt: { id: receipt.receiptId, keyId: receipt.keyId, jws: receipt.jws },
    payment: started.payment,
    ...answer,
  };
}
