// The last append of a job: its final attempt, its completion and the receipt over both, stored together or not at all.
import { utf8 } from '#src/domain/encoding.ts';
import { type EventOf, event } from '#src/domain/events.ts';
import { makeId } from '#src/domain/ids.ts';
import { closeInterrupted, type Interruption } from '#src/domain/job/commands.ts';
import { type CompletedJob, evolveJob, type Job, type RunningJob } from '#src/domain/job/state.ts';
import {
  type ChainedEvent,
  compactJws,
  eventChain,
  type ReceiptLog,
  receiptPayload,
  signingInput,
} from '#src/domain/receipt/payload.ts';
import { iso, isoNow } from '#src/lib/iso.ts';
import type { NewEvent } from '#src/ports/event-log.ts';
import type { Signer } from '#src/ports/signer.ts';
import {
  appendUnlessOvertaken,
  envelope,
  JOB,
  type JobView,
  type JournalDeps,
  load,
} from '#src/usecases/process/stream.ts';

export type CloseDeps = JournalDeps & {
  readonly signer: Signer;
  /** What a receipt states of the transparency log; null while there is none. */
  readonly receiptLog: () => ReceiptLog | null;
};

/** `repeats` false: an append of unknown fate is left to a later look. */
type AppendOptions = { readonly repeats?: boolean };

type Closing = readonly [EventOf<'AttemptMade'>, EventOf<'JobCompleted'>];

/** A running job with its events so far, as recorded. */
export type RunningView = {
  readonly stream: string;
  readonly state: RunningJob;
  readonly events: readonly ChainedEvent[];
};

/** Closes the job, and returns the stored job if another process closed it first. */
export async function closeJob(
  deps: CloseDeps,
  running: RunningView,
  closing: Closing,
): Promise<CompletedJob> {
  return (await closeFirst(deps, running, closing)) ?? loadClosed(deps, running.state.started.jobId);
}

/**
 * Signs the receipt over the stream as it will be stored, and appends all three events at the revision read. Nothing
 * signed leaves before that append is acknowledged. Returns null if another process wrote to the stream first.
 */
async function closeFirst(
  deps: CloseDeps,
  running: RunningView,
  closing: Closing,
  options: AppendOptions = {},
): Promise<CompletedJob | null> {
  const { jobId } = running.state.started;
  const last = running.events.at(-1);
  if (last === undefined) throw new Error('a running job has its JobStarted');
  const ending = envelope(deps, closing, jobId, last.id);
  const signed = await signReceipt(deps, running, closing, ending);
  const events = [...ending, ...envelope(deps, [signed], jobId, ending.at(-1)?.id)];
  const place = { stream: running.stream, expected: last.revision };
  if ((await appendUnlessOvertaken(deps, place, events, options)) === null) return null;
  const job = [...closing, signed].reduce<Job>(evolveJob, running.state);
  if (job.status !== 'completed') throw new Error('the closing events do not complete the job');
  return job;
}

/** Returns the stored job, which is known to be completed. */
export async function loadClosed(deps: Pick<JournalDeps, 'log'>, jobId: string): Promise<CompletedJob> {
  const { state } = await load(deps, JOB, jobId);
  if (state.status !== 'completed') throw new Error('another process wrote to a job that is still running');
  return state;
}

/** Closes a job whose request will not be sent (again). Returns null if it is not running or another process wrote first. */
export async function closeUnsent(
  deps: CloseDeps,
  view: JobView,
  cause: Interruption,
  closedBy: 'owner' | 'recovery',
  options: AppendOptions = {},
): Promise<CompletedJob | null> {
  const at = isoNow(deps);
  const closing = closeInterrupted(cause, at, view.state, closedBy);
  if (closing.kind === 'impossible' || view.state.status !== 'running') return null;
  return closeFirst(deps, { ...view, state: view.state }, closing.events, options);
}

async function signReceipt(
  deps: CloseDeps,
  running: RunningView,
  closing: Closing,
  ending: readonly NewEvent[],
): Promise<EventOf<'ReceiptSigned'>> {
  const { started, attempts } = running.state;
  const [{ data: attempt }, { data: completed }] = closing;
  const chained = [...running.events, ...asChained(running.stream, running.events.length, ending)];
  const chain = eventChain(chained);
  const now = deps.clock.now();
  // One key for the receipt, valid at its `iat`: the keys may be rotated at any moment.
  const key = deps.signer.current(now);
  const receiptId = makeId('rcpt', deps.entropy.bytes(16));
  const payload = receiptPayload(
    { started, attempts: [...attempts, attempt], completed },
    {
      receiptId,
      iat: Math.floor(now / 1000),
      stream: { id: running.stream, revision: String(chained.length - 1), chain },
      log: deps.receiptLog(),
    },
  );
  const { keyId } = key;
  const input = signingInput(payload, keyId);
  const jws = compactJws(input, await key.sign(utf8(input)));
  const { jobId, decisionId } = started;
  const signedAt = iso(now);
  return event('ReceiptSigned', { jobId, decisionId, receiptId, keyId, jws, signedAt });
}

/** Appended events as the event log will return them; `from`: the revision of the first. */
export function asChained(stream: string, from: number, events: readonly NewEvent[]): ChainedEvent[] {
  return events.map(({ type, id, data }, i) => ({ stream, revision: BigInt(from + i), type, id, data }));
}
