// What is returned of a stored receipt: itself with the verdict of now, and the verification of a receipt or of a job.
import { STREAM } from '#src/domain/events.ts';
import type { ChainedEvent } from '#src/domain/receipt/payload.ts';
import { type ReceiptRecord, receiptRecord } from '#src/domain/receipt/record.ts';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { type JobFacts, type LogFacts, verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { Fault, refused } from '#src/domain/refusal.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { WitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import { logFault } from '#src/ports/outage.ts';
import { findEvent } from '#src/usecases/process/read-events.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';

/** Each throws `Fault('read_models_unavailable')` if the read models are unavailable; null: not retained. */
export type ReceiptRows = {
  receipt(id: string): Promise<ReceiptRecord | null>;
  /** Of every receipt in the log, also of one whose row is purged; null: there is none. */
  jobOfReceipt(id: string): Promise<string | null>;
  job(id: string): Promise<(StoredJob & { readonly receiptId: string | null }) | null>;
};

const NO_RECEIPT = refused('receipt_not_found', 'There is no such receipt.');

export function storedReceipts(rows: ReceiptRows, deps: VerifyDeps) {
  const verify = storedReceiptVerifier(deps);
  /** Receipts are retained in the rows for some time, and in the log always. */
  const receiptOf = async (id: string): Promise<ReceiptRecord | null> => {
    const row = await rows.receipt(id);
    if (row !== null) return row;
    const jobId = await rows.jobOfReceipt(id);
    return jobId === null ? null : loggedReceipt(deps.log, jobId, id).catch(failed);
  };
  return {
    /** `verified` by the published keys as they are now, not as it was found when the receipt was recorded. */
    async find(id: string) {
      const receipt = await receiptOf(id);
      if (receipt === null) return null;
      const report = await verify(receipt, null);
      return { ...receipt, verified: report.ok, checkpoint: await checkpointOf(report, deps.transparency) };
    },
    async verifyJob(jobId: string) {
      const job = await rows.job(jobId);
      if (job === null) return refused('job_not_found', 'There is no such job, or it is no longer retained.');
      if (job.receiptId === null) return refused('receipt_not_ready', 'The job has no receipt yet.');
      const receipt = await receiptOf(job.receiptId);
      return receipt === null ? NO_RECEIPT : verify(receipt, job);
    },
    async verifyReceipt(receiptId: string) {
      const receipt = await receiptOf(receiptId);
      return receipt === null ? NO_RECEIPT : verify(receipt, await rows.job(receipt.jobId));
    },
  };
}

/** The newest cosigned checkpoint that contains a verified receipt, or the newest of all; null: none contains it yet. */
async function checkpointOf(
  { checks }: VerificationReport,
  { latest, covering }: VerifyDeps['transparency'],
): Promise<string | null> {
  const details = checks.find((check) => check.name === 'receipt_logged')?.details;
  if (details === undefined || !('index' in details)) return null;
  const newest = latest();
  const isIn = details.index < (parseCheckpoint(newest ?? '')?.size ?? 0);
  return isIn ? newest : covering(details.index);
}

/** The first of an id in its job's stream, as the rows have it. Throws what the log throws. */
async function loggedReceipt(log: EventLog, jobId: string, id: string): Promise<ReceiptRecord | null> {
  for (const recorded of await log.readStream(STREAM.job(jobId))) {
    const event = findEvent(recorded);
    if (event?.type === 'ReceiptSigned' && event.data.receiptId === id) return receiptRecord(event.data);
  }
  return null;
}

// ── verification: what cannot change is verified once ───────────────────────────────────────────────

export type VerifyDeps = {
  readonly log: EventLog;
  readonly keys: KeyDirectory;
  readonly primitives: Primitives;
  readonly transparency: Pick<Transparency, 'prove' | 'covering' | 'newest' | 'latest'>;
  /** Of the witnesses that this relay asks; absent or null: the log has none. */
  readonly policy?: WitnessPolicy | null;
  readonly clock: Pick<Clock, 'now'>;
  /** Whether the rows have reached the log's head as it is now; never throws. */
  readonly reachedHead: () => Promise<boolean>;
};

/** As the read model has it; the events come from the log. */
export type StoredJob = Omit<JobFacts, 'events'>;

export type StoredReceipt = { readonly id: string; readonly jobId: string; readonly jws: string };

/** `job` null: no longer retained, so the receipt-only checks run. Throws `Fault` if the event log is unavailable. */
type VerifyStored = (receipt: StoredReceipt, job: StoredJob | null) => Promise<VerificationReport>;

/** Reports kept: of the receipts that were read last. One takes about 8 kB. */
const KEPT = 1024;

/**
 * A report is kept by all that it was computed from: the receipt's bytes, the job's row, the keys and the newest
 * checkpoint. The job's events up to its completion never change. A report is not kept if a check failed, or if the
 * receipt is not logged yet: those depend on the time and on rows that are behind.
 */
export function storedReceiptVerifier(deps: VerifyDeps): VerifyStored {
  const kept = new Map<string, { readonly facts: string; readonly report: VerificationReport }>();
  return async (receipt, job) => {
    const facts = JSON.stringify([receipt, job, deps.keys.list(), deps.transparency.latest()]);
    const name = `${receipt.id} ${job === null ? 'alone' : 'with its job'}`;
    const known = kept.get(name);
    const report = known?.facts === facts ? known.report : await verifyStored(deps, receipt, job);
    // The oldest entry of a Map is its first: an entry that is used becomes the newest.
    kept.delete(name);
    if (report.ok && !isPending(report)) kept.set(name, { facts, report });
    for (const [oldest] of kept) if (kept.size > KEPT) kept.delete(oldest);
    return report;
  };
}

const isPending = ({ checks }: VerificationReport): boolean =>
  checks.some(
    ({ name, details }) =>
      (name === 'receipt_logged' || name === 'receipt_witnessed') && details?.pending === true,
  );

export async function verifyStored(
  deps: VerifyDeps,
  receipt: StoredReceipt,
  job: StoredJob | null,
): Promise<VerificationReport> {
  const facts = job === null ? null : await jobFacts(deps.log, job).catch(failed);
  const keys = deps.keys.list();
  const first = await judge(deps, receipt, { keys, job: facts, log: await logFacts(deps, receipt.id) });
  if (first.ok) return first;
  // The keys at hand are seconds old, and rows that are behind lack checkpoints: nothing is called bad by those.
  const [freshKeys, caughtUp] = await Promise.all([deps.keys.refresh(), deps.reachedHead()]).catch(failed);
  const log = await logFacts(deps, receipt.id);
  const second = await judge(deps, receipt, { keys: freshKeys, job: facts, log });
  const isLate =
    log?.proof === null && second.checks.some(({ name, ok }) => name === 'receipt_logged' && !ok);
  // A log that has just begun has signed over no receipt: none is late.
  if (isLate && parseCheckpoint((await deps.transparency.newest()) ?? '')?.size === 0)
    return judge(deps, receipt, { keys: freshKeys, job: facts, log: null });
  if (isLate && !caughtUp) {
    const message = 'The records of the transparency log are not up to date: try again shortly.';
    throw new Fault('read_models_unavailable', message, { retryAfterSeconds: 1 });
  }
  return second;
}

type Known = {
  readonly keys: readonly KeyRecord[];
  readonly job: JobFacts | null;
  readonly log: LogFacts | null;
};

function judge({ primitives }: VerifyDeps, { id: receiptId, jobId, jws }: StoredReceipt, known: Known) {
  return verifySignedReceipt({ jws, receiptId, jobId, ...known }, primitives);
}

/** null if the rows contain no checkpoint: there is no transparency log, or one too new to contain a receipt. */
async function logFacts(
  { transparency, clock, policy = null }: VerifyDeps,
  receiptId: string,
): Promise<LogFacts | null> {
  const proof = await transparency.prove(receiptId);
  if (proof === null) return null;
  const now = Math.floor(clock.now() / 1000);
  return { proof: typeof proof === 'string' ? proof : null, now, policy, isOwnPolicy: true };
}

function failed(cause: unknown): never {
  if (!(cause instanceof EventLogUnavailable)) throw cause;
  throw logFault(cause, 'the proof cannot be checked now.');
}

async function jobFacts(log: EventLog, job: StoredJob): Promise<JobFacts> {
  return { ...job, events: upToCompletion(await log.readStream(STREAM.job(job.jobId))) };
}

/** The chain covers a job's events up to and with JobCompleted. */
export function upToCompletion<E extends ChainedEvent>(events: readonly E[]): readonly E[] {
  const end = events.findIndex((event) => event.type === 'JobCompleted');
  return end < 0 ? events : events.slice(0, end + 1);
}
