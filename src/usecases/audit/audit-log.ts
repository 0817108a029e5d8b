// An audit of the whole record: takes every event once, in the log's order. The caller supplies the events, from an event
// log or an exported file.

import {
  damageFinding,
  type EventLocation,
  type Fault,
  type Finding,
  findingOf,
  jobOfStream,
  locationOf,
  NOWHERE,
  streamFault,
} from '#src/domain/audit/finding.ts';
import type { KeptCheckpoint } from '#src/domain/audit/judge-checkpoint.ts';
import type { Damage } from '#src/domain/damage.ts';
import { type RecordedEvent, readEvent } from '#src/domain/event-codec.ts';
import {
  type DomainEvent,
  isClaimEvent,
  isJobEvent,
  isPaymentEvent,
  type JobEvent,
  type KeyEvent,
} from '#src/domain/events.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';
import { auditChain } from './audit-log-chain.ts';
import { auditJobs } from './audit-log-jobs.ts';
import { auditKept } from './audit-log-kept.ts';
import { auditKeys } from './audit-log-keys.ts';
import { auditMoney } from './audit-log-money.ts';
import { auditOrder } from './audit-log-order.ts';
import { auditRefunds } from './audit-log-refunds.ts';
import { auditTree } from './audit-log-tree.ts';
import { type ScratchRow, streamStates } from './stream-states.ts';

export type AuditDeps = {
  readonly primitives: Primitives;
  /** Closed by `close`. */
  readonly scratch: AuditScratch<ScratchRow>;
  /** Called for each finding, in no particular order. */
  readonly onFinding: (finding: Finding) => void;
  /** The auditor's own evidence. `keys` null: the record's own keys are trusted. */
  readonly kept?: {
    readonly keys: readonly KeyRecord[] | null;
    readonly checkpoints: readonly KeptCheckpoint[];
  };
};

export type AuditSummary = Awaited<ReturnType<Auditor['finish']>>;

export class Auditor {
  readonly #deps: AuditDeps;
  readonly #order;
  readonly #keys;
  readonly #jobs;
  readonly #money;
  readonly #refunds;
  readonly #chain;
  readonly #kept;
  readonly #tree;
  readonly #verifications: Promise<void>[] = [];
  #findings = 0;

  constructor(deps: AuditDeps) {
    const { primitives, scratch, kept } = deps;
    const states = streamStates(scratch);
    this.#deps = deps;
    this.#order = auditOrder(states);
    this.#keys = auditKeys(kept?.keys ?? null);
    this.#money = auditMoney(states);
    this.#refunds = auditRefunds(states);
    this.#chain = auditChain(states);
    this.#kept = auditKept(kept?.checkpoints ?? [], primitives);
    this.#tree = auditTree(states, primitives, this.#kept);
    const { started, completed } = this.#money;
    const [keys, leaves] = [this.#keys.list, this.#tree.size];
    this.#jobs = auditJobs({ states, primitives, keys, leaves, started, completed });
  }

  /** What the record says of the chain, for `auditAgainstChain` after `finish`. */
  get stated() {
    const { standing, chargeOf } = this.#chain;
    return { standing, chargeOf, refunds: this.#refunds.stated };
  }

  /** One call after another, in global order from the log's first event on. */
  async take(recorded: RecordedEvent): Promise<void> {
    const { id, stream, revision } = recorded;
    const location = locationOf(recorded);
    const faults = this.#order.take(recorded);
    this.#report(faults, location);
    this.#deps.scratch.note(id, `${revision} ${stream}`);
    if (faults.some(({ kind }) => kind === 'event_unreadable')) return;
    const event = readEvent(recorded);
    const misplaced = event === null ? UNREADABLE : streamFault(event, stream);
    if (event !== null && misplaced === null)
      this.#report(await this.#judge(recorded, event, location), location);
    else {
      this.#report([misplaced ?? UNREADABLE], location);
      // Leaves count by their types, in any stream.
      if (event !== null) this.#tree.leaf(location, event, null);
    }
    if (this.#verifications.length >= 2 * VERIFICATIONS) await this.#settle(VERIFICATIONS);
  }

  /** In place of events that cannot be read, between those that can. */
  takeDamaged(damage: Damage): void {
    const finding = damageFinding(damage);
    const { kind: _, message: __, ...location } = finding;
    this.#report(this.#order.takeDamaged(damage), location);
    this.#found(finding);
    if (damage.stream !== null && location.jobId !== null) this.#jobs.takeDamaged(damage.stream, location);
  }

  /** Reports the findings that need the whole record; call once. */
  async finish() {
    await this.#settle(0);
    const openJobs = await this.#reportEnds();
    const { uncoveredLeaves, unfitCheckpoints, ...logged } = this.#tree.summary();
    return {
      ...this.#order.counts,
      ...this.#jobs.counts,
      comparisons: this.#chain.comparisons(),
      refunds: this.#refunds.count(),
      keys: this.#keys.list().length,
      ...logged,
      findings: this.#findings,
      /** Facts that are no findings. `openJobs`: they run, or were interrupted and are not closed yet. */
      notes: { openJobs, ...this.#money.open(), uncoveredLeaves, unfitCheckpoints },
    };
  }

  /** Frees the scratch space, also of an audit that is abandoned. */
  close(): void {
    this.#deps.scratch.close();
  }

  /** Returns how many jobs are open. */
  async #reportEnds(): Promise<number> {
    const [tree, { kept, scratch }] = [this.#tree, this.#deps];
    let openJobs = 0;
    for (const { fault, location } of this.#jobs.unfinished()) {
      if (fault === null) openJobs++;
      else this.#report([fault], location);
    }
    const late = tree.late();
    if (late !== null) this.#report([late.fault], late.location);
    this.#report(this.#keys.missing(), NOWHERE);
    this.#report(await this.#kept.faults(kept?.keys ?? this.#keys.list(), tree.factsOf), NOWHERE);
    for (const { fault, location } of this.#jobs.unproven(this.#kept.before)) this.#report([fault], location);
    // Ids are random: an honest relay writes none twice.
    for (const { value, place } of scratch.repeated()) {
      const [revision = '', stream = ''] = [
        place.slice(0, place.indexOf(' ')),
        place.slice(place.indexOf(' ') + 1),
      ];
      const message = `another event has its id, ${value}`;
      const location = { stream, revision, jobId: jobOfStream(stream), position: null };
      this.#report([{ kind: 'event_id_repeated', message }], location);
    }
    const { unbalanced, books } = this.#money;
    const ends = [...unbalanced(), ...this.#refunds.void(), ...this.#chain.unbalanced(books())];
    this.#report(ends, NOWHERE);
    return openJobs;
  }

  /** Judges an event in its right stream. */
  #judge(
    recorded: RecordedEvent,
    event: DomainEvent,
    location: EventLocation,
  ): readonly Fault[] | Promise<readonly Fault[]> {
    const { stream } = recorded;
    if (isJobEvent(event)) return this.#job(recorded, event, location);
    if (isClaimEvent(event)) return this.#money.claim(stream, event);
    if (isPaymentEvent(event)) {
      const faults = this.#money.payment(stream, event);
      if (event.type !== 'PaymentRefunded') return faults;
      return [...faults, ...this.#refunds.recorded(stream, event, location)];
    }
    switch (event.type) {
      case 'RefundClaimed':
        return this.#refunds.claimed(stream, event, location);
      case 'DecisionRecorded':
        return this.#money.decision(recorded, event);
      case 'SigningKeyActivated':
      case 'SigningKeyRetired':
        return this.#key(event, location);
      case 'ChainReconciled':
        return this.#chain.round(event.data, location);
      case 'CheckpointSigned':
        return this.#tree.checkpoint(event, this.#keys.list());
      default:
        return event satisfies never;
    }
  }

  #job(recorded: RecordedEvent, event: JobEvent, location: EventLocation): readonly Fault[] {
    const { faults, payload, verified } = this.#jobs.take(recorded, event, location);
    if (verified !== null) this.#verifications.push(verified.then((found) => this.#report(found, location)));
    return [...faults, ...this.#tree.leaf(location, event, payload)];
  }

  #key(event: KeyEvent, location: EventLocation): readonly Fault[] {
    this.#tree.leaf(location, event, null);
    const { faults, ended } = this.#keys.take(event);
    for (const receipt of ended === null ? [] : this.#jobs.revoked(...ended)) {
      const message = `issued after the end of its key, which ${location.stream} revision ${location.revision} records later`;
      this.#report([{ kind: 'receipt_key_invalid', message }], receipt);
    }
    return faults;
  }

  #report(faults: readonly Fault[], location: EventLocation): void {
    for (const fault of faults) this.#found(findingOf(fault, location));
  }

  #found(finding: Finding): void {
    this.#findings++;
    this.#deps.onFinding(finding);
  }

  /** Waits until at most so many of the verifications are under way; the oldest end first. */
  async #settle(most: number): Promise<void> {
    const verifications = this.#verifications;
    await Promise.all(verifications.splice(0, Math.max(0, verifications.length - most)));
  }
}

/**
 * Signatures are verified in the runtime's thread pool: up to twice as many at a time, and as many while the events are read
 * on. Enough to keep the pool busy, with little memory.
 */
const VERIFICATIONS = 64;

const UNREADABLE: Fault = {
  kind: 'event_unreadable',
  message: 'no released event type and version has such data',
};
