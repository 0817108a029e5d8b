// A receipt with the events of its job, from which all that it states follows: this thread judges it, or another one.
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import type { JsonObject } from '../canonical-json.ts';
import { readEvent } from '../event-codec.ts';
import type { ReceiptSigned } from '../events/job.ts';
import { isJobEvent } from '../events.ts';
import { absentJob, type CompletedJob, evolveJob, type Job } from '../job/state.ts';
import { type ReadReceipt, readReceipt } from '../receipt/payload.ts';
import type { Fault } from './finding.ts';
import { receiptFaults } from './judge-job.ts';

/** `revision`: decimal. */
export type StoredEvent = {
  readonly stream: string;
  readonly revision: string;
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
};

/** `events`: the job's, as recorded, up to JobCompleted, and all that its state follows from. */
export type ReceiptEvidence = { readonly events: readonly StoredEvent[]; readonly signed: ReceiptSigned };

/** `keys`: as announced before the receipt. `job`, `read`: what follows from the evidence. */
export type ReceiptCase = ReceiptEvidence & {
  readonly keys: readonly KeyRecord[];
  readonly job: Omit<CompletedJob, 'receipt'>;
  readonly read: ReadReceipt;
};

export function judgeReceipt(
  { events, signed, keys, job, read }: ReceiptCase,
  primitives: Primitives,
): Promise<readonly Fault[]> {
  const chained = events.map((stored) => ({ ...stored, revision: BigInt(stored.revision) }));
  return receiptFaults(job, chained, signed, read, keys, primitives);
}

export function receiptCase(evidence: ReceiptEvidence, keys: readonly KeyRecord[]): ReceiptCase {
  const job = evidence.events.reduce(followed, absentJob);
  if (job.status !== 'completed') throw new Error('the events of the receipt complete no job');
  return { ...evidence, keys, job, read: readReceipt(evidence.signed.jws) };
}

function followed(job: Job, stored: StoredEvent): Job {
  const event = readEvent(stored);
  return event !== null && isJobEvent(event) ? evolveJob(job, event) : job;
}
