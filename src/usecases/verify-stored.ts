// Verification of a stored receipt: the read models say what is retained, the log gives the events, the domain judges.
import { STREAM } from '../domain/events.ts';
import type { ChainedEvent } from '../domain/receipt/chain.ts';
import {
  type JobFacts,
  type Primitives,
  type VerificationReport,
  verifyReceipt,
} from '../domain/receipt/verify.ts';
import { Fault } from '../domain/refusal.ts';
import { type EventLog, EventLogUnavailable } from '../ports/event-log.ts';
import type { KeyDirectory } from './key-directory.ts';

export type VerifyDeps = {
  readonly log: EventLog;
  readonly keys: KeyDirectory;
  readonly primitives: Primitives;
};

/** As the read model has it; the events come from the log. */
export type StoredJob = Omit<JobFacts, 'events'>;

export type StoredReceipt = { readonly id: string; readonly jobId: string; readonly jws: string };

/** `job` null: no longer retained, so the receipt-only checks run. Throws `Fault` where the log is unavailable. */
export async function verifyStored(
  deps: VerifyDeps,
  receipt: StoredReceipt,
  job: StoredJob | null,
): Promise<VerificationReport> {
  const [keys, facts] = await Promise.all([
    deps.keys.list(),
    job === null ? null : jobFacts(deps.log, job),
  ]).catch(failed);
  const { id: receiptId, jobId, jws } = receipt;
  return verifyReceipt({ jws, receiptId, jobId, keys, job: facts, log: null }, deps.primitives);
}

function failed(cause: unknown): never {
  if (!(cause instanceof EventLogUnavailable)) throw cause;
  const message = 'The event log is unavailable: the proof cannot be checked now.';
  throw new Fault('event_log_unavailable', message, { cause, retryAfterSeconds: 5 });
}

async function jobFacts(log: EventLog, job: StoredJob): Promise<JobFacts> {
  return { ...job, events: upToCompletion(await log.readStream(STREAM.job(job.jobId))) };
}

/** The chain covers a job's events up to and with JobCompleted. */
export function upToCompletion<E extends ChainedEvent>(events: readonly E[]): readonly E[] {
  const end = events.findIndex((event) => event.type === 'JobCompleted');
  return end < 0 ? events : events.slice(0, end + 1);
}
