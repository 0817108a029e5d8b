// Verification of a stored receipt: the read models say what is retained, the log gives the events, the domain judges.
import { STREAM } from '#src/domain/events.ts';
import type { ChainedEvent } from '#src/domain/receipt/chain.ts';
import type { LogFacts } from '#src/domain/receipt/log-check.ts';
import {
  type JobFacts,
  type Primitives,
  type VerificationReport,
  verifyReceipt,
} from '#src/domain/receipt/verify.ts';
import { Fault } from '#src/domain/refusal.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';

export type VerifyDeps = {
  readonly log: EventLog;
  readonly keys: KeyDirectory;
  readonly primitives: Primitives;
  readonly transparency: Pick<Transparency, 'prove' | 'checkpoint'>;
  readonly clock: Pick<Clock, 'now'>;
  /** Whether the rows have reached the log's head as it is now; never throws. */
  readonly reachedHead: () => Promise<boolean>;
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
  const first = await judge(deps, receipt, { keys, job: facts, log: await logFacts(deps, receipt.id) });
  if (first.ok) return first;
  // The keys at hand are seconds old, and rows that are behind lack checkpoints: nothing is called bad by those.
  const [freshKeys, caughtUp] = await Promise.all([deps.keys.refresh(), deps.reachedHead()]).catch(failed);
  const log = await logFacts(deps, receipt.id);
  const second = await judge(deps, receipt, { keys: freshKeys, job: facts, log });
  const isLate =
    log?.proof === null && second.checks.some(({ name, ok }) => name === 'receipt_logged' && !ok);
  // It began a moment ago, with all receipts of before: none is late until something was signed.
  if (isLate && (await isEmpty(deps)))
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
  return verifyReceipt({ jws, receiptId, jobId, ...known }, primitives);
}

/** null where the rows know of no checkpoint: there is no transparency log, or one too new to tell of a receipt. */
async function logFacts({ transparency, clock }: VerifyDeps, receiptId: string): Promise<LogFacts | null> {
  const proof = await transparency.prove(receiptId);
  if (proof === null) return null;
  const now = Math.floor(clock.now() / 1000);
  return { proof: typeof proof === 'string' ? proof : null, now };
}

async function isEmpty({ transparency }: VerifyDeps): Promise<boolean> {
  return parseCheckpoint((await transparency.checkpoint()) ?? '')?.size === 0;
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
