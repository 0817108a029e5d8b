// Verification of a stored receipt: the read models say what is retained, the log gives the events, the domain judges.
import type { PaymentFacts } from '../domain/events.ts';
import { STREAM } from '../domain/events.ts';
import type { ChainedEvent } from '../domain/receipt/chain.ts';
import {
  type JobFacts,
  type Primitives,
  type VerificationReport,
  verifyReceipt,
} from '../domain/receipt/verify.ts';
import type { EventLog } from '../ports/event-log.ts';
import type { KeyDirectory } from './key-directory.ts';

export type VerifyDeps = {
  readonly log: EventLog;
  readonly keys: KeyDirectory;
  readonly primitives: Primitives;
};

/** As the read model has it. */
export type StoredJob = {
  readonly id: string;
  readonly status: string;
  readonly responseStatus: number | null;
  readonly method: string;
  readonly attempts: number;
  readonly decisionId: string | null;
  readonly receiptId: string | null;
  readonly targetCommitment: string;
  readonly payment: PaymentFacts | null;
};

export type StoredReceipt = { readonly id: string; readonly jobId: string; readonly jws: string };

/** `job` null: no longer retained, so the receipt-only checks run. */
export async function verifyStored(
  deps: VerifyDeps,
  receipt: StoredReceipt,
  job: StoredJob | null,
): Promise<VerificationReport> {
  const [keys, facts] = await Promise.all([deps.keys.list(), job === null ? null : jobFacts(deps.log, job)]);
  const { id: receiptId, jobId, jws } = receipt;
  return verifyReceipt({ jws, receiptId, jobId, keys, job: facts }, deps.primitives);
}

async function jobFacts(log: EventLog, job: StoredJob): Promise<JobFacts> {
  const { id: jobId, ...row } = job;
  return { ...row, jobId, events: upToCompletion(await log.readStream(STREAM.job(jobId))) };
}

/** The chain covers a job's events up to and with JobCompleted. */
export function upToCompletion<E extends ChainedEvent>(events: readonly E[]): readonly E[] {
  const end = events.findIndex((event) => event.type === 'JobCompleted');
  return end < 0 ? events : events.slice(0, end + 1);
}
