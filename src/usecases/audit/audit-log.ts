// An audit of the whole record: every event once, in the log's order, and nothing else. Where the events come from, a log
// or an exported file, is the caller's.

import {
  type Fault,
  type Finding,
  findingOf,
  type Place,
  placeOf,
  streamFault,
} from '#src/domain/audit/finding.ts';
import { COMPROMISED } from '#src/domain/audit/judge-job.ts';
import { toBase64 } from '#src/domain/encoding.ts';
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
import type { Primitives } from '#src/domain/receipt/verify.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';
import { auditJobs } from './audit-log-jobs.ts';
import { auditKeys } from './audit-log-keys.ts';
import { auditMoney } from './audit-log-money.ts';
import { auditOrder } from './audit-log-order.ts';
import { auditTree } from './audit-log-tree.ts';

export type AuditDeps = {
  readonly primitives: Primitives;
  /** The caller's to close. */
  readonly scratch: AuditScratch;
  /** Called as each is found, in no order that means anything. */
  readonly onFinding: (finding: Finding) => void;
};

/** What is no fault of the record, and still worth knowing. */
export type AuditNotes = {
  /** Jobs that run, or that were interrupted and are not closed yet. */
  readonly openJobs: number;
  /** Payments that settled and whose job never started. */
  readonly unservedPayments: number;
  /** Payments of which the record does not say whether the money moved. */
  readonly unconfirmedPayments: number;
  /** Leaves that no checkpoint covers yet; 0 where the record has no checkpoint. */
  readonly uncoveredLeaves: number;
  /** Checkpoints behind the first one that does not fit: what is wrong before it makes them wrong, too. */
  readonly unfitCheckpoints: number;
};

export type AuditSummary = {
  readonly events: number;
  readonly streams: number;
  readonly jobs: number;
  readonly receipts: number;
  readonly keys: number;
  readonly checkpoints: number;
  readonly treeSize: number;
  /** RFC 6962 root over all leaves, base64. */
  readonly root: string;
  /** Of the transparency log; null where the record has none. */
  readonly origin: string | null;
  /** Position of the last event; null where there is none. */
  readonly head: string | null;
  readonly findings: number;
  readonly notes: AuditNotes;
};

export type Auditor = {
  /** One call after another, in global order from the log's first event on. */
  take(event: RecordedEvent): Promise<void>;
  /** Findings that need the whole record; call once. */
  finish(): Promise<AuditSummary>;
};

export function makeAuditor({ primitives, scratch, onFinding }: AuditDeps): Auditor {
  const order = auditOrder(scratch);
  const keys = auditKeys(scratch);
  const money = auditMoney(scratch);
  const tree = auditTree(scratch, primitives);
  const started = money.started;
  const jobs = auditJobs({ scratch, primitives, keys: () => keys.keys, started });
  let findings = 0;
  let openJobs = 0;
  let times: ClaimedTimes = [];
  let verifications: Promise<void>[] = [];

  function report(fault: Fault, place: Place): void {
    findings++;
    onFinding(findingOf(fault, place));
  }
  const reportAll = (faults: readonly Fault[], place: Place) => {
    for (const fault of faults) report(fault, place);
  };

  function job(recorded: RecordedEvent, event: JobEvent, place: Place): void {
    const { faults, payload, verified } = jobs.take(recorded, event);
    reportAll(faults, place);
    if (event.type === 'JobCompleted') reportAll(money.completed(event.data), place);
    if (verified !== null) verifications.push(verified.then((found) => reportAll(found, place)));
    reportAll(tree.leaf(place, event, payload), place);
    if (event.type !== 'ReceiptSigned' || payload === null) return;
    keys.issued(event.data.keyId, payload.iat, place);
  }

  function key(event: KeyEvent, place: Place): void {
    const { faults, undone } = keys.take(event);
    reportAll(faults, place);
    for (const receipt of undone) report(undoneBy(event, place), receipt);
    tree.leaf(place, event, null);
  }

  /** An event where it belongs. */
  function judge(recorded: RecordedEvent, event: DomainEvent, place: Place): void | Promise<void> {
    times = laterTimes(times, recorded.stream, event);
    if (isPaymentEvent(event)) return reportAll(money.payment(recorded.stream, event), place);
    switch (event.type) {
      case 'JobStarted':
      case 'AttemptMade':
      case 'JobCompleted':
      case 'ReceiptSigned':
        return job(recorded, event, place);
      case 'IdempotencyKeyClaimed':
      case 'IdempotencyKeyReleased':
        return reportAll(money.claim(recorded.stream, event, jobs.statusOf), place);
      case 'DecisionRecorded':
        return reportAll(money.decision(recorded, event), place);
      case 'SigningKeyActivated':
      case 'SigningKeyRetired':
        return key(event, place);
      case 'CheckpointSigned':
        return tree.checkpoint(place, event, keys.keys).then((found) => {
          for (const { fault, place } of found) report(fault, place);
        });
      default:
        return event satisfies never;
    }
  }

  /** Signatures are verified in the runtime's thread pool, this many at a time. */
  async function settle(most: number): Promise<void> {
    if (verifications.length <= most) return;
    const running = verifications;
    verifications = [];
    await Promise.all(running);
  }

  return {
    async take(recorded) {
      const place = placeOf(recorded);
      const { faults, skip } = order.take(recorded);
      reportAll(faults, place);
      if (skip) return;
      const event = readEvent(recorded);
      const astray = event === null ? UNREADABLE : streamFault(event, recorded.stream);
      if (event !== null && astray === null) await judge(recorded, event, place);
      else {
        report(astray ?? UNREADABLE, place);
        // Whatever its stream: the leaves are counted by their types alone.
        if (event !== null) tree.leaf(place, event, null);
      }
      await settle(VERIFICATIONS);
    },
    async finish() {
      await settle(0);
      for (const { fault, place } of jobs.unfinished()) {
        if (fault === null) openJobs++;
        else report(fault, place);
      }
      const broken = tree.broken(Math.floor(reachedAt(times) / 1000));
      if (broken !== null) report(broken.fault, broken.place);
      return {
        events: order.events,
        streams: order.streams,
        jobs: jobs.jobs,
        receipts: jobs.receipts,
        keys: keys.keys.length,
        checkpoints: tree.checkpoints,
        treeSize: tree.size,
        root: toBase64(tree.root()),
        origin: tree.origin,
        head: order.head,
        findings,
        notes: {
          openJobs,
          unservedPayments: money.open.unserved,
          unconfirmedPayments: money.open.unconfirmed,
          uncoveredLeaves: tree.uncovered,
          unfitCheckpoints: tree.unfit,
        },
      };
    },
  };
}

/** Enough to keep the thread pool busy, and few enough to be nothing in memory. */
const VERIFICATIONS = 64;

/** The latest claimed times of two streams, the later one first. Unix ms. */
type ClaimedTimes = readonly { readonly stream: string; readonly at: number }[];

/** Payments and claims do not count: the call that writes them writes its job, by the same clock. */
function laterTimes(times: ClaimedTimes, stream: string, event: DomainEvent): ClaimedTimes {
  if (!COUNTED.has(EVENTS[event.type].stream)) return times;
  const at = Date.parse(claimedTime(event));
  if (event.type === 'CheckpointSigned') return [{ stream, at }];
  const before = times.find((time) => time.stream === stream)?.at ?? at;
  const others = times.filter((time) => time.stream !== stream);
  return [...others, { stream, at: Math.max(before, at) }].sort((a, b) => b.at - a.at).slice(0, 2);
}

const COUNTED: ReadonlySet<StreamKind> = new Set(['job', 'decision', 'keys', 'receiptLog']);

/** The second-latest of them, so that one clock that runs ahead makes nothing late; 0 if only one stream has any. */
const reachedAt = (times: ClaimedTimes): number => times[1]?.at ?? 0;

const UNREADABLE: Fault = {
  kind: 'event_unreadable',
  message: 'no type and version that was ever released has such data',
};

function undoneBy({ type, data }: KeyEvent, { stream, revision }: Place): Fault {
  const compromised = type === 'SigningKeyRetired' && data.reason === 'compromised';
  const message = `issued after its key had ended, as ${stream} revision ${revision} says later`;
  return { kind: 'receipt_key_invalid', message: compromised ? `${message}: ${COMPROMISED}` : message };
}
