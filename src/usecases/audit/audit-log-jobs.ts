// Jobs in an audit: each stream is folded from its start to its receipt, and its state is then deleted.

import { type EventLocation, type Fault, locationOf } from '#src/domain/audit/finding.ts';
import { jobFaults, receiptFaults } from '#src/domain/audit/judge-job.ts';
import type { ClaimFacts } from '#src/domain/audit/judge-payment.ts';
import { type JsonObject, jsonLength } from '#src/domain/canonical-json.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type EventOf, type JobEvent, STREAM } from '#src/domain/events.ts';
import type { JobStarted } from '#src/domain/job/events.ts';
import { absentJob, evolveJob, type Job } from '#src/domain/job/state.ts';
import { type ReceiptPayload, readReceipt } from '#src/domain/receipt/payload.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

/** `revision`: decimal. */
type Stored = {
  readonly stream: string;
  readonly revision: string;
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
};

/**
 * A job without a receipt so far. `lost`: its start is not in the record; the consequences are not reported. `characters`:
 * about as many as its JSON has.
 */
type OpenJob = {
  readonly job: Job;
  readonly events: readonly Stored[];
  readonly last: EventLocation;
  readonly lost: boolean;
  readonly characters: number;
};

export type JobDeps = {
  readonly scratch: AuditScratch;
  readonly primitives: Primitives;
  /** As announced so far. */
  readonly keys: () => readonly KeyRecord[];
  /** Contradictions between a job's start and other streams. */
  readonly started: (started: EventOf<'JobStarted'>) => readonly Fault[];
};

type JobVerdict = {
  readonly faults: readonly Fault[];
  /** Of a receipt that can be read. */
  readonly payload: ReceiptPayload | null;
  /** Of a receipt: the faults of its verification, which runs concurrently with the next events. */
  readonly verified: Promise<readonly Fault[]> | null;
};

type JobAudit = {
  take(recorded: RecordedEvent, event: JobEvent): JobVerdict;
  statusOf(jobId: string): ClaimFacts['job'];
  /** Of a job without a receipt so far; null: its start is not in the record. */
  startOf(stream: string): JobStarted | null;
  /** Jobs without a receipt at the end of the record. */
  unfinished(): Iterable<{ readonly fault: Fault | null; readonly location: EventLocation }>;
  readonly jobs: number;
  readonly receipts: number;
};

const OVER: Fault = {
  kind: 'job_event_impossible',
  message: 'the job has ended: its receipt was recorded before',
};
const SECOND: Fault = { kind: 'receipt_repeated', message: 'the job has a receipt already' };

export function auditJobs({ scratch, primitives, keys, started }: JobDeps): JobAudit {
  const open = scratch.table<OpenJob>('open');
  const over = scratch.table<true>('over');
  /** The stream of each receipt id. */
  const receiptIds = scratch.table<string>('receipt');
  const counts = { jobs: 0, receipts: 0 };

  function idFault({ receiptId }: EventOf<'ReceiptSigned'>['data'], { stream }: RecordedEvent): Fault | null {
    const before = receiptIds.get(receiptId);
    if (before === null) receiptIds.put(receiptId, stream);
    if (before === null || before === stream) return null;
    const message = `a receipt of ${before} has the same id, ${receiptId}`;
    return { kind: 'receipt_id_repeated', message };
  }

  /** Applies the event to its job. */
  function follow(recorded: RecordedEvent, event: JobEvent, known: OpenJob | null): readonly Fault[] {
    const { job, events, lost, characters: before } = known ?? fresh(recorded);
    const first = job.status === 'absent' && event.type === 'JobStarted';
    if (job.status === 'absent') counts.jobs += lost ? 0 : 1;
    const faults = lost && event.type !== 'ReceiptSigned' ? [] : jobFaults(job, event);
    // A stream without end does not grow the state.
    const next = events.length >= MAX_EVENTS && event.type === 'AttemptMade' ? job : evolveJob(job, event);
    const characters =
      before + (next === job && events.length >= MAX_EVENTS ? 0 : 2 * jsonLength(recorded.data));
    open.put(
      recorded.stream,
      {
        job: next,
        events: withEvent(events, recorded),
        last: locationOf(recorded),
        lost: lost || (job.status === 'absent' && !first),
        characters,
      },
      characters,
    );
    return first ? [...faults, ...started(event)] : faults;
  }

  function receipt(
    recorded: RecordedEvent,
    event: EventOf<'ReceiptSigned'>,
    before: OpenJob | null,
  ): JobVerdict {
    counts.receipts++;
    const repeated = idFault(event.data, recorded);
    const faults = [...follow(recorded, event, before), ...(repeated === null ? [] : [repeated])];
    open.delete(recorded.stream);
    over.put(recorded.stream, true);
    if (before?.job.status !== 'completed') return { ...NOTHING, faults };
    const events = before.events.map((stored) => ({ ...stored, revision: BigInt(stored.revision) }));
    const read = readReceipt(event.data.jws);
    const verified = receiptFaults(before.job, events, event.data, read, keys(), primitives);
    return { faults, payload: read.payload, verified };
  }

  return {
    take(recorded, event) {
      const known = open.get(recorded.stream);
      if (known === null && over.get(recorded.stream) !== null) {
        if (event.type !== 'ReceiptSigned') return { ...NOTHING, faults: [OVER] };
        counts.receipts++;
        const repeated = idFault(event.data, recorded);
        return { ...NOTHING, faults: repeated === null ? [SECOND] : [SECOND, repeated] };
      }
      if (event.type === 'ReceiptSigned') return receipt(recorded, event, known);
      return { ...NOTHING, faults: follow(recorded, event, known) };
    },
    statusOf(jobId) {
      const stream = STREAM.job(jobId);
      if (over.get(stream) !== null) return 'completed';
      return open.get(stream)?.job.status ?? 'absent';
    },
    startOf(stream) {
      const job = open.get(stream)?.job ?? absentJob;
      return job.status === 'absent' ? null : job.started;
    },
    *unfinished() {
      for (const [, { job, last: location, lost }] of open.entries()) {
        if (lost || job.status === 'absent') continue;
        const message = 'the job is completed and has no receipt';
        const fault: Fault | null = job.status === 'completed' ? { kind: 'receipt_missing', message } : null;
        yield { fault, location };
      }
    },
    get jobs() {
      return counts.jobs;
    },
    get receipts() {
      return counts.receipts;
    },
  };
}

const NOTHING: JobVerdict = { faults: [], payload: null, verified: null };

const fresh = (recorded: RecordedEvent): OpenJob => ({
  job: absentJob,
  events: [],
  last: locationOf(recorded),
  lost: false,
  characters: 0,
});

/** More than any job has: the receipt of a longer stream is refused in any case. */
const MAX_EVENTS = 16;

const withEvent = (events: OpenJob['events'], recorded: RecordedEvent): OpenJob['events'] =>
  events.length < MAX_EVENTS ? [...events, storedOf(recorded)] : events;

const storedOf = ({ stream, revision, id, type, data }: RecordedEvent): Stored => ({
  stream,
  revision: String(revision),
  id,
  type,
  data,
});
