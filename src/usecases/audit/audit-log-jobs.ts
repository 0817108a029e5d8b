// Jobs in an audit: each stream is folded from its start to its receipt, and its events are then forgotten.

import { type EventLocation, type Fault, type Found, fault } from '#src/domain/audit/finding.ts';
import { jobFaults, receiptFaults, receiptRepeated } from '#src/domain/audit/judge-job.ts';
import { jsonLength } from '#src/domain/canonical-json.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { JobStarted } from '#src/domain/events/job.ts';
import { type EventOf, type JobEvent, STREAM } from '#src/domain/events.ts';
import { absentJob, evolveJob } from '#src/domain/job/state.ts';
import { type ReceiptPayload, readReceipt } from '#src/domain/receipt/payload.ts';
import { type KeyRecord, keyOpenAt, type Primitives } from '#src/domain/signing-keys/keys.ts';
import type { OpenJob, StoredEvent, StreamStates } from './stream-states.ts';

export type JobDeps = {
  readonly states: StreamStates;
  readonly primitives: Primitives;
  /** As announced so far. */
  readonly keys: () => readonly KeyRecord[];
  /** Leaves of the transparency log so far. */
  readonly leaves: () => number;
  /** Contradictions between a job's start or end and other streams. */
  readonly started: (event: EventOf<'JobStarted'>) => readonly Fault[];
  readonly completed: (event: EventOf<'JobCompleted'>, started: JobStarted) => readonly Fault[];
  readonly from?: JobCounts | undefined;
};

export type JobCounts = { readonly jobs: number; readonly receipts: number };

type JobVerdict = {
  readonly faults: readonly Fault[];
  /** Of a receipt that can be read. */
  readonly payload: ReceiptPayload | null;
  /** Of a receipt: the faults of its verification, which runs concurrently with the next events. */
  readonly verified: Promise<readonly Fault[]> | null;
};

const afterReceipt = ({ type, data: { jobId } }: JobEvent): Fault =>
  fault(
    'job_event_impossible',
    `The event ${type} of job ${jobId} follows the receipt of the job, which ends it.`,
  );

export function auditJobs({ states, primitives, keys, leaves, started, completed, from }: JobDeps) {
  const counts = { jobs: 0, receipts: 0, ...from };
  let open = 0;

  /** Applies an event before the receipt to its job. */
  function follow(
    recorded: RecordedEvent,
    event: Exclude<JobEvent, { type: 'ReceiptSigned' }>,
    location: EventLocation,
    { job, events, lost }: Omit<OpenJob, 'last'>,
  ): readonly Fault[] {
    const isFirst = job.status === 'absent';
    const isStart = isFirst && event.type === 'JobStarted';
    if (isFirst && !lost) counts.jobs++;
    // A stream without end does not grow the state.
    const full = events.length >= MAX_EVENTS;
    const open = {
      job: full && event.type === 'AttemptMade' ? job : evolveJob(job, event),
      events: full ? events : [...events, storedOf(recorded)],
      last: location,
      lost: lost || (isFirst && !isStart),
    };
    states.put('job', recorded.stream, open, full ? 0 : 2 * jsonLength(recorded.data));
    const faults = lost ? [] : jobFaults(job, event);
    if (event.type === 'JobCompleted' && job.status === 'running')
      return [...faults, ...completed(event, job.started)];
    return isStart ? [...faults, ...started(event)] : faults;
  }

  function receipt(
    { stream }: RecordedEvent,
    event: EventOf<'ReceiptSigned'>,
    location: EventLocation,
    { job, events, lost, damaged }: Omit<OpenJob, 'last'>,
  ): JobVerdict {
    if (job.status === 'absent' && !lost) counts.jobs++;
    const { keyId, receiptId, jws } = event.data;
    const read = readReceipt(jws);
    const iat = read.payload?.iat ?? null;
    states.put('job', stream, { job: null, keyId, iat, leaf: leaves(), last: location });
    if (damaged) return { ...NOTHING, payload: read.payload };
    const faults = [...jobFaults(job, event)];
    const other = states.otherOwner(`receipt ${receiptId}`, stream);
    if (other !== null)
      faults.push(fault('receipt_id_repeated', `A receipt of ${other} has the same id, ${receiptId}.`));
    if (job.status !== 'completed') return { ...NOTHING, faults };
    const chained = events.map((stored) => ({ ...stored, revision: BigInt(stored.revision) }));
    const verified = receiptFaults(job, chained, event.data, read, keys(), primitives);
    return { faults, payload: read.payload, verified };
  }

  return {
    counts: counts as JobCounts,
    take(recorded: RecordedEvent, event: JobEvent, location: EventLocation): JobVerdict {
      const known = states.get('job', recorded.stream) ?? FRESH;
      if (event.type === 'ReceiptSigned') {
        counts.receipts++;
        if (known.job === null) return { ...NOTHING, faults: [receiptRepeated(event.data)] };
        return receipt(recorded, event, location, known);
      }
      if (known.job === null) return { ...NOTHING, faults: [afterReceipt(event)] };
      if (known.damaged) return NOTHING;
      return { ...NOTHING, faults: follow(recorded, event, location, known) };
    },
    takeDamaged(stream: string, location: EventLocation): void {
      const known = states.get('job', stream) ?? FRESH;
      if (known.job !== null) states.put('job', stream, { ...known, last: location, damaged: true });
    },
    /** Receipts so far that the key could sign `before`, and not `after` its retirement. */
    *revoked(before: KeyRecord, after: KeyRecord): Generator<EventLocation> {
      for (const known of states.all('job')) {
        if (known.job !== null || known.keyId !== before.keyId || known.iat === null) continue;
        if (keyOpenAt(before, known.iat) && !keyOpenAt(after, known.iat)) yield known.last;
      }
    },
    /**
     * At the end: receipts of compromised keys that state an earlier time than the compromise, and that are not among the
     * leaves that were kept from before it. `keptBefore`: their number, for a time in Unix seconds; null: none were kept.
     */
    *unproven(keptBefore: (compromisedAt: number) => number | null): Generator<Found> {
      const compromised = new Map<string, { readonly from: number; readonly kept: number }>();
      for (const { keyId, purpose, compromisedAt: from } of keys()) {
        const kept = purpose !== 'receipt' || from === null ? null : keptBefore(from);
        if (from !== null && kept !== null) compromised.set(keyId, { from, kept });
      }
      if (compromised.size === 0) return;
      for (const known of states.all('job')) {
        if (known.job !== null || known.iat === null) continue;
        const key = compromised.get(known.keyId);
        if (key === undefined || known.iat >= key.from || known.leaf < key.kept) continue;
        const message = `The key of the receipt is compromised, and the checkpoint that you kept from before the compromise covers ${key.kept} leaves without the receipt: it can have been signed with the stolen key and backdated.`;
        yield { fault: fault('receipt_date_unproven', message), location: known.last };
      }
    },
    /** After `unfinished`: jobs that run, or that were interrupted and are not closed yet. */
    open: () => open,
    /** At the end: completed jobs without a receipt. */
    *unfinished(): Generator<Found> {
      for (const [, known] of states.open('job', STREAM.job(''))) {
        if (known.job === null || known.lost || known.damaged || known.job.status === 'absent') continue;
        const message = `Job ${known.last.jobId} is completed and has no receipt.`;
        if (known.job.status !== 'completed') open++;
        else yield { fault: fault('receipt_missing', message), location: known.last };
      }
    },
  };
}

const NOTHING: JobVerdict = { faults: [], payload: null, verified: null };

const FRESH: Omit<OpenJob, 'last'> = { job: absentJob, events: [], lost: false };

/** More than any job has: the receipt of a longer stream is refused in any case. */
const MAX_EVENTS = 16;

const storedOf = ({ stream, revision, id, type, data }: RecordedEvent): StoredEvent => ({
  stream,
  revision: String(revision),
  id,
  type,
  data,
});
