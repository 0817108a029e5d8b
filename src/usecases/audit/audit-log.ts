// An audit of the whole record: takes every event once, in the log's order. The caller supplies the events, from an event
// log or an exported file.

import {
  type EventLocation,
  type Fault,
  type Finding,
  findingOf,
  locationOf,
  NOWHERE,
  streamFault,
} from '#src/domain/audit/finding.ts';
import { COMPROMISED } from '#src/domain/audit/judge-job.ts';
import { keyFaults } from '#src/domain/audit/judge-keys.ts';
import { type RecordedEvent, readEvent } from '#src/domain/event-codec.ts';
import type { StreamKind } from '#src/domain/event-fields.ts';
import {
  claimedTime,
  type DomainEvent,
  EVENTS,
  isPaymentEvent,
  type JobEvent,
  type KeyEvent,
} from '#src/domain/events.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import { evolveKeys, type KeyRecord, keyOpenAt } from '#src/domain/signing-keys/keys.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';
import { compareEvidence, type KeptEvidence, NO_EVIDENCE } from './audit-evidence.ts';
import { auditJobs } from './audit-log-jobs.ts';
import { auditMoney } from './audit-log-money.ts';
import { auditOrder } from './audit-log-order.ts';
import { auditTree } from './audit-log-tree.ts';
import { streamStates } from './stream-states.ts';
import { uniqueValues } from './unique-values.ts';

export type AuditDeps = {
  readonly primitives: Primitives;
  /** The caller closes it. */
  readonly scratch: AuditScratch;
  /** Called for each finding, in no particular order. */
  readonly onFinding: (finding: Finding) => void;
  readonly kept?: KeptEvidence;
};

export type Auditor = ReturnType<typeof makeAuditor>;
export type AuditSummary = Awaited<ReturnType<Auditor['finish']>>;

export function makeAuditor({ primitives, scratch, onFinding, kept = NO_EVIDENCE }: AuditDeps) {
  const states = streamStates(scratch);
  const unique = uniqueValues(scratch);
  const order = auditOrder(states);
  const money = auditMoney(states, unique);
  const tree = auditTree(scratch, primitives, kept.checkpoints);
  let keys: readonly KeyRecord[] = [];
  /** Where each key was announced first. */
  const announcements = new Map<string, EventLocation>();
  /** Of the first activation. */
  let secretCheck: string | null = null;
  const jobs = auditJobs({
    states,
    primitives,
    keys: () => keys,
    started: money.started,
    completed: money.completed,
  });
  let findings = 0;
  let openJobs = 0;
  let times: ClaimedTimes = [];
  const verifications: Promise<void>[] = [];

  function report(fault: Fault, location: EventLocation): void {
    findings++;
    onFinding(findingOf(fault, location));
  }
  const reportAll = (faults: readonly Fault[], location: EventLocation) => {
    for (const fault of faults) report(fault, location);
  };

  function job(recorded: RecordedEvent, event: JobEvent, location: EventLocation): void {
    const { faults, payload, verified } = jobs.take(recorded, event, location);
    reportAll(faults, location);
    if (verified !== null) verifications.push(verified.then((found) => reportAll(found, location)));
    reportAll(tree.leaf(location, event, payload), location);
    if (event.type === 'ReceiptSigned')
      unique.add('receipt', event.data.receiptId, recorded.stream, location);
  }

  function key(event: KeyEvent, location: EventLocation): void {
    reportAll(keyFaults({ keys, secretCheck }, event), location);
    const { keyId } = event.data;
    const before = keys.find((key) => key.keyId === keyId);
    if (before === undefined) announcements.set(keyId, location);
    keys = evolveKeys(keys, event);
    if (event.type === 'SigningKeyActivated') secretCheck ??= event.data.secretCheck;
    const after = keys.find((key) => key.keyId === keyId);
    if (before !== undefined && after !== undefined && event.type === 'SigningKeyRetired')
      for (const { iat, location: receipt } of tree.receiptsOf(keyId))
        if (keyOpenAt(before, iat) && !keyOpenAt(after, iat)) report(revokedBy(event, location), receipt);
    tree.leaf(location, event, null);
  }

  /** Judges an event in its right stream. */
  function judge(recorded: RecordedEvent, event: DomainEvent, location: EventLocation): void | Promise<void> {
    times = laterTimes(times, recorded.stream, event);
    if (isPaymentEvent(event)) return reportAll(money.payment(recorded.stream, event, location), location);
    switch (event.type) {
      case 'JobStarted':
      case 'AttemptMade':
      case 'JobCompleted':
      case 'ReceiptSigned':
        return job(recorded, event, location);
      case 'IdempotencyKeyClaimed':
      case 'IdempotencyKeyReleased':
        return reportAll(money.claim(recorded.stream, event), location);
      case 'DecisionRecorded':
        return reportAll(money.decision(recorded, event), location);
      case 'SigningKeyActivated':
      case 'SigningKeyRetired':
        return key(event, location);
      case 'CheckpointSigned':
        return tree.checkpoint(location, event, keys).then((found) => {
          for (const { fault, location } of found) report(fault, location);
        });
      default:
        return event satisfies never;
    }
  }

  /** Waits until at most so many of the verifications are under way; the oldest end first. */
  const settle = (most: number) =>
    Promise.all(verifications.splice(0, Math.max(0, verifications.length - most)));

  return {
    /** One call after another, in global order from the log's first event on. */
    async take(recorded: RecordedEvent): Promise<void> {
      const location = locationOf(recorded);
      const { faults, skip } = order.take(recorded);
      reportAll(faults, location);
      if (faults.every(({ kind }) => kind !== 'event_unreadable'))
        unique.add('event', recorded.id, null, location);
      if (skip) return;
      const event = readEvent(recorded);
      const misplaced = event === null ? UNREADABLE : streamFault(event, recorded.stream);
      if (event !== null && misplaced === null) await judge(recorded, event, location);
      else {
        report(misplaced ?? UNREADABLE, location);
        // Leaves count by their types, in any stream.
        if (event !== null) tree.leaf(location, event, null);
      }
      if (verifications.length >= 2 * VERIFICATIONS) await settle(VERIFICATIONS);
    },
    /** Reports the findings that need the whole record; call once. */
    async finish() {
      await settle(0);
      for (const { fault, location } of jobs.unfinished()) {
        if (fault === null) openJobs++;
        else report(fault, location);
      }
      for (const { fault, location } of unique.repeated()) report(fault, location);
      const broken = tree.broken(Math.floor(reachedAt(times) / 1000));
      if (broken !== null) report(broken.fault, broken.location);
      const announced = keys.map((key) => ({ key, location: announcements.get(key.keyId) ?? NOWHERE }));
      const evidence = await compareEvidence(kept, announced, tree.factsFor, primitives);
      for (const { fault, location } of evidence.found) report(fault, location);
      const { uncoveredLeaves, unfitCheckpoints, ...logged } = tree.summary();
      return {
        ...order.counts,
        ...jobs.counts,
        keys: keys.length,
        ...logged,
        findings,
        /** Facts that are no findings. */
        notes: {
          /** Jobs that run, or that were interrupted and are not closed yet. */
          openJobs,
          /** Settled payments whose job never started. */
          unservedPayments: money.open.unserved,
          /** Payments for which the record does not show whether the money moved. */
          unconfirmedPayments: money.open.unconfirmed,
          uncoveredLeaves,
          unfitCheckpoints,
          /** Kept checkpoints that fit, while the record has neither them nor a larger one. */
          unreachedCheckpoints: evidence.unreached,
        },
      };
    },
  };
}

/**
 * Signatures are verified in the runtime's thread pool: up to twice as many at a time, and as many while the events are read
 * on. Enough to keep the pool busy, with little memory.
 */
const VERIFICATIONS = 64;

/** The latest claimed times of two streams, the later one first. Unix ms. */
type ClaimedTimes = readonly { readonly stream: string; readonly at: number }[];

/** Ignores payments and claims: the same process writes their job, with the same clock. */
function laterTimes(times: ClaimedTimes, stream: string, event: DomainEvent): ClaimedTimes {
  if (!COUNTED.has(EVENTS[event.type].stream)) return times;
  const time = { stream, at: Date.parse(claimedTime(event)) };
  const [first, second] = times;
  if (first === undefined || event.type === 'CheckpointSigned') return [time];
  if (first.stream === stream) return time.at > first.at ? [time, ...times.slice(1)] : times;
  if (time.at > first.at) return [time, first];
  return second === undefined || time.at > second.at ? [first, time] : times;
}

const COUNTED: ReadonlySet<StreamKind> = new Set(['job', 'decision', 'keys', 'receiptLog']);

/** The second-latest time, so that a single fast clock makes nothing late; 0 if only one stream has a time. */
const reachedAt = (times: ClaimedTimes): number => times[1]?.at ?? 0;

const UNREADABLE: Fault = {
  kind: 'event_unreadable',
  message: 'no released event type and version has such data',
};

function revokedBy({ type, data }: KeyEvent, { stream, revision }: EventLocation): Fault {
  const compromised = type === 'SigningKeyRetired' && data.reason === 'compromised';
  const message = `issued after the end of its key, which ${stream} revision ${revision} records later`;
  return { kind: 'receipt_key_invalid', message: compromised ? `${message}: ${COMPROMISED}` : message };
}
