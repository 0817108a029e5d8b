// An audit of the whole record: takes every event once, in the log's order. The caller supplies the events, from an event
// log or an exported file.

import {
  damageFinding,
  type EventLocation,
  type Fault,
  type Finding,
  findingOf,
  locationOf,
  NOWHERE,
  streamFault,
} from '#src/domain/audit/finding.ts';
import type { KeptCheckpoint } from '#src/domain/audit/judge-checkpoint.ts';
import type { Damage } from '#src/domain/damage.ts';
import { sha256, toBase64url, utf8 } from '#src/domain/encoding.ts';
import { type RecordedEvent, readEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, isPaymentEvent, type JobEvent, type KeyEvent } from '#src/domain/events.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import { evolveKeys, type KeyRecord, narrowedKey, thumbprintText } from '#src/domain/signing-keys/keys.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';
import { auditChain } from './audit-log-chain.ts';
import { auditIds } from './audit-log-ids.ts';
import { auditJobs } from './audit-log-jobs.ts';
import { auditMoney } from './audit-log-money.ts';
import { auditOrder } from './audit-log-order.ts';
import { auditTree } from './audit-log-tree.ts';
import { type ScratchRow, streamStates } from './stream-states.ts';

export type AuditDeps = {
  readonly primitives: Primitives;
  /** The caller closes it. */
  readonly scratch: AuditScratch<ScratchRow>;
  /** Called for each finding, in no particular order. */
  readonly onFinding: (finding: Finding) => void;
  /** The auditor's own evidence. `keys` null: the record's own keys are trusted. */
  readonly kept?: {
    readonly keys: readonly KeyRecord[] | null;
    readonly checkpoints: readonly KeptCheckpoint[];
  };
};

export type Auditor = ReturnType<typeof makeAuditor>;
export type AuditSummary = Awaited<ReturnType<Auditor['finish']>>;

export function makeAuditor({ primitives, scratch, onFinding, kept }: AuditDeps) {
  const states = streamStates(scratch);
  const order = auditOrder(states);
  const ids = auditIds(states);
  const money = auditMoney(states);
  const chain = auditChain(states);
  const tree = auditTree(states, primitives, kept?.checkpoints ?? []);
  /** As announced so far, within the windows of the trusted keys. */
  let keys: readonly KeyRecord[] = [];
  const jobs = auditJobs({
    states,
    primitives,
    keys: () => keys,
    leaves: tree.size,
    started: money.started,
    completed: money.completed,
  });
  let findings = 0;
  const verifications: Promise<void>[] = [];

  const report = (fault: Fault, location: EventLocation) => found(findingOf(fault, location));
  function found(finding: Finding): void {
    findings++;
    onFinding(finding);
  }
  const reportAll = (faults: readonly Fault[], location: EventLocation) => {
    for (const fault of faults) report(fault, location);
  };

  function job(recorded: RecordedEvent, event: JobEvent, location: EventLocation): void {
    const { faults, payload, verified } = jobs.take(recorded, event, location);
    reportAll(faults, location);
    if (verified !== null) verifications.push(verified.then((found) => reportAll(found, location)));
    reportAll(tree.leaf(location, event, payload), location);
  }

  function key(event: KeyEvent, location: EventLocation): void {
    tree.leaf(location, event, null);
    const { keyId } = event.data;
    const before = keys.find((known) => known.keyId === keyId);
    keys = evolveKeys(keys, event).map((key) => narrowedKey(key, kept?.keys ?? []));
    const after = keys.find((known) => known.keyId === keyId);
    if (event.type === 'SigningKeyActivated') {
      const { x, purpose } = event.data;
      if (before !== undefined) report(impossibleKey('the key was announced before'), location);
      if (toBase64url(sha256(utf8(thumbprintText(x)))) !== keyId)
        report({ kind: 'key_id_mismatch', message: 'the id of the key is not its thumbprint' }, location);
      if (kept?.keys && !kept.keys.some((known) => known.keyId === keyId && known.purpose === purpose))
        report({ kind: 'key_untrusted', message: `the trusted key set lacks the key ${keyId}` }, location);
    } else if (before === undefined || after === undefined)
      report(impossibleKey('the key was never announced'), location);
    else
      for (const receipt of jobs.revoked(before, after)) {
        const message = `issued after the end of its key, which ${location.stream} revision ${location.revision} records later`;
        report({ kind: 'receipt_key_invalid', message }, receipt);
      }
  }

  /** Judges an event in its right stream. */
  function judge(recorded: RecordedEvent, event: DomainEvent, location: EventLocation): void | Promise<void> {
    if (isPaymentEvent(event)) {
      if (event.type === 'PaymentRefunded') chain.refunded(event, location);
      return reportAll(money.payment(recorded.stream, event), location);
    }
    switch (event.type) {
      case 'JobStarted':
      case 'AttemptMade':
      case 'JobCompleted':
      case 'ReceiptSigned':
        return job(recorded, event, location);
      case 'IdempotencyKeyClaimed':
      case 'IdempotencyKeyReleased':
        return reportAll(money.claim(recorded.stream, event), location);
      case 'RefundClaimed':
        chain.claimed(event, location);
        return reportAll(money.refund(recorded.stream, event), location);
      case 'DecisionRecorded':
        return reportAll(money.decision(recorded, event), location);
      case 'SigningKeyActivated':
      case 'SigningKeyRetired':
        return key(event, location);
      case 'ChainReconciled':
        return reportAll(chain.round(event.data, location), location);
      case 'CheckpointSigned':
        return tree.checkpoint(event, keys).then((faults) => reportAll(faults, location));
      default:
        return event satisfies never;
    }
  }

  /** Waits until at most so many of the verifications are under way; the oldest end first. */
  const settle = (most: number) =>
    Promise.all(verifications.splice(0, Math.max(0, verifications.length - most)));

  return {
    /** What the record says of the chain, for `auditAgainstChain` after `finish`. */
    chain: { standing: chain.standing, refunds: chain.refunds, chargeOf: chain.chargeOf },
    /** One call after another, in global order from the log's first event on. */
    async take(recorded: RecordedEvent): Promise<void> {
      const location = locationOf(recorded);
      const faults = order.take(recorded);
      reportAll(faults, location);
      ids.take(recorded);
      if (faults.some(({ kind }) => kind === 'event_unreadable')) return;
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
    /** In place of events that cannot be read, between those that can. */
    takeDamaged(damage: Damage): void {
      const finding = damageFinding(damage);
      const { kind: _, message: __, ...location } = finding;
      reportAll(order.takeDamaged(damage), location);
      found(finding);
      if (damage.stream !== null && location.jobId !== null) jobs.takeDamaged(damage.stream, location);
    },
    /** Reports the findings that need the whole record; call once. */
    async finish() {
      await settle(0);
      let openJobs = 0;
      for (const { fault, location } of jobs.unfinished()) {
        if (fault === null) openJobs++;
        else report(fault, location);
      }
      const late = tree.late();
      if (late !== null) report(late.fault, late.location);
      for (const { keyId } of kept?.keys ?? [])
        if (!keys.some((key) => key.keyId === keyId)) report(missingKey(keyId), NOWHERE);
      reportAll(await tree.keptFaults(kept?.keys ?? keys), NOWHERE);
      for (const { fault, location } of jobs.unproven(tree.keptBefore)) report(fault, location);
      for (const { fault, location } of ids.repeated()) report(fault, location);
      reportAll([...money.ends(), ...chain.unbalanced(money.books())], NOWHERE);
      const { unservedPayments, unconfirmedPayments, missingPayments, correctedCharges, begunRefunds } =
        money.open();
      const { uncoveredLeaves, unfitCheckpoints, ...logged } = tree.summary();
      return {
        ...order.counts,
        ...jobs.counts,
        ...chain.counts,
        keys: keys.length,
        ...logged,
        findings,
        /** Facts that are no findings. */
        notes: {
          /** Jobs that run, or that were interrupted and are not closed yet. */
          openJobs,
          /** Settled payments whose job never started. */
          unservedPayments,
          /** Payments for which the record does not show whether the money moved. */
          unconfirmedPayments,
          /** Charges that the chain does not have. */
          missingPayments,
          /** Charges that the chain has in another transaction than was recorded first, and receipts state. */
          correctedCharges,
          /** Refunds that have begun and are not recorded. */
          begunRefunds,
          uncoveredLeaves,
          unfitCheckpoints,
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

const impossibleKey = (message: string): Fault => ({ kind: 'key_event_impossible', message });

const missingKey = (keyId: string): Fault => ({
  kind: 'key_missing',
  message: `the record lacks the trusted key ${keyId}, or is older than the key set`,
});

const UNREADABLE: Fault = {
  kind: 'event_unreadable',
  message: 'no released event type and version has such data',
};
