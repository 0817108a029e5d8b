// Jobs in an audit: each stream is folded from its start to its receipt, and its state is then deleted.

import type { EventLocation, Fault } from '#src/domain/audit/finding.ts';
import { jobFaults, receiptFaults } from '#src/domain/audit/judge-job.ts';
import { jsonLength } from '#src/domain/canonical-json.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { EventOf, JobEvent } from '#src/domain/events.ts';
import type { JobStarted } from '#src/domain/job/events.ts';
import { absentJob, evolveJob } from '#src/domain/job/state.ts';
import { type ReceiptPayload, readReceipt } from '#src/domain/receipt/payload.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { OpenJob, StoredEvent, StreamStates } from './stream-states.ts';

export type JobDeps = {
  readonly states: StreamStates;
  readonly primitives: Primitives;
  /** As announced so far. */
  readonly keys: () => readonly KeyRecord[];
  /** Contradictions between a job's start and other streams. */
  readonly started: (event: EventOf<'JobStarted'>, location: EventLocation) => readonly Fault[];
  /** Contradictions between a job's end and its payment. */
  readonly completed: (event: EventOf<'JobCompleted'>, started: JobStarted) => readonly Fault[];
};

type JobVerdict = {
  readonly faults: readonly Fault[];
  /** Of a receipt that can be read. */
  readonly payload: ReceiptPayload | null;
  /** Of a receipt: the faults of its verification, which runs concurrently with the next events. */
  readonly verified: Promise<readonly Fault[]> | null;
};

const OVER: Fault = {
  kind: 'job_event_impossible',
  message: 'the job has ended: its receipt was recorded before',
};
const SECOND: Fault = { kind: 'receipt_repeated', message: 'the job has a receipt already' };

export function auditJobs({ states, primitives, keys, started, completed }: JobDeps) {
  const counts = { jobs: 0, receipts: 0 };

  /** Applies the event to its job. */
  function follow(
    recorded: RecordedEvent,
    event: JobEvent,
    location: EventLocation,
    known: OpenJob | null,
  ): readonly Fault[] {
    const { job, events, lost } = known ?? FRESH;
    const first = job.status === 'absent' && event.type === 'JobStarted';
    if (job.status === 'absent') counts.jobs += lost ? 0 : 1;
    const faults = lost && event.type !== 'ReceiptSigned' ? [] : jobFaults(job, event);
    if (event.type === 'ReceiptSigned') states.put('job', recorded.stream, 'over', 0);
    else {
      // A stream without end does not grow the state.
      const full = events.length >= MAX_EVENTS;
      const open = {
        job: full && event.type === 'AttemptMade' ? job : evolveJob(job, event),
        events: full ? events : [...events, storedOf(recorded)],
        last: location,
        lost: lost || (job.status === 'absent' && !first),
      };
      states.put('job', recorded.stream, open, full ? 0 : 2 * jsonLength(recorded.data));
    }
    if (first) return [...faults, ...started(event, location)];
    if (event.type !== 'JobCompleted' || job.status === 'absent') return faults;
    return [...faults, ...completed(event, job.started)];
  }

  function receipt(
    recorded: RecordedEvent,
    event: EventOf<'ReceiptSigned'>,
    location: EventLocation,
    before: OpenJob | null,
  ): JobVerdict {
    const faults = follow(recorded, event, location, before);
    if (before?.job.status !== 'completed') return { ...NOTHING, faults };
    const events = before.events.map((stored) => ({ ...stored, revision: BigInt(stored.revision) }));
    const read = readReceipt(event.data.jws);
    const verified = receiptFaults(before.job, events, event.data, read, keys(), primitives);
    return { faults, payload: read.payload, verified };
  }

  return {
    counts: counts as Readonly<typeof counts>,
    take(recorded: RecordedEvent, event: JobEvent, location: EventLocation): JobVerdict {
      const known = states.get('job', recorded.stream);
      if (event.type === 'ReceiptSigned') counts.receipts++;
      if (known === 'over') return { ...NOTHING, faults: [event.type === 'ReceiptSigned' ? SECOND : OVER] };
      if (event.type === 'ReceiptSigned') return receipt(recorded, event, location, known);
      return { ...NOTHING, faults: follow(recorded, event, location, known) };
    },
    /** Jobs without a receipt at the end of the record. */
    *unfinished(): Generator<{ readonly fault: Fault | null; readonly location: EventLocation }> {
      for (const known of states.all('job')) {
        if (known === 'over' || known.lost || known.job.status === 'absent') continue;
        const message = 'the job is completed and has no receipt';
        const missing = known.job.status === 'completed';
        yield { fault: missing ? { kind: 'receipt_missing', message } : null, location: known.last };
      }
    },
  };
}

const NOTHING: JobVerdict = { faults: [], payload: null, verified: null };

const FRESH = { job: absentJob, events: [], lost: false } as const;

/** More than any job has: the receipt of a longer stream is refused in any case. */
const MAX_EVENTS = 16;

const storedOf = ({ stream, revision, id, type, data }: RecordedEvent): StoredEvent => ({
  stream,
  revision: String(revision),
  id,
  type,
  data,
});
