// An audit of the whole record: takes every event once, in the log's order. The caller supplies the events, from an event
// log or an exported file; with a state, those that follow the events of an earlier audit.

import {
  damageFinding,
  type EventLocation,
  type Fault,
  type Finding,
  type Found,
  fault,
  findingOf,
  jobOfStream,
  locationOf,
  NOWHERE,
  streamFault,
} from '#src/domain/audit/finding.ts';
import type { KeptCheckpoint } from '#src/domain/audit/judge-checkpoint.ts';
import type { Damage } from '#src/domain/damage.ts';
import { type RecordedEvent, readEvent } from '#src/domain/event-codec.ts';
import { newerKind, newerText } from '#src/domain/event-versions.ts';
import {
  type DomainEvent,
  isClaimEvent,
  isJobEvent,
  isKeyEvent,
  isPaymentEvent,
  isScheduleEvent,
  type JobEvent,
  type KeyEvent,
} from '#src/domain/events.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import type { WitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';
import type { Folds } from './audit-folds.ts';
import { auditChain, auditRefunds } from './audit-log-chain.ts';
import { auditJobs } from './audit-log-jobs.ts';
import { auditKept, auditKeys } from './audit-log-keys.ts';
import { auditMoney } from './audit-log-money.ts';
import { auditSchedules } from './audit-log-schedules.ts';
import { auditTree } from './audit-log-tree.ts';
import { auditWitnesses } from './audit-log-witnesses.ts';
import { auditOrder } from './check-integrity.ts';
import { type KeptAudit, keptAudit } from './kept-audit.ts';
import { type OrderedFindings, orderedFindings } from './ordered-findings.ts';
import { type ScratchRow, type StreamStates, streamStates } from './stream-states.ts';

export type AuditDeps = {
  readonly primitives: Primitives;
  /** Closed by `close`. */
  readonly scratch: AuditScratch<ScratchRow>;
  /** Called for each finding: in the order of the events, and then for those that need the whole record. */
  readonly onFinding: (finding: Finding) => void;
  /** The scratch space is a state, which a later audit of this release continues. */
  readonly state?: { readonly release: string; readonly save: () => void; readonly isNew?: boolean };
  /** The auditor's own evidence. `keys` null: the record's own keys are trusted. */
  readonly kept?: {
    readonly keys: readonly KeyRecord[] | null;
    readonly checkpoints: readonly KeptCheckpoint[];
    /** Absent or null: no cosignature is verified. */
    readonly policy?: WitnessPolicy | null;
  };
};

export type AuditSummary = Awaited<ReturnType<Auditor['finish']>>;

export class Auditor {
  /** What is kept for a later audit. */
  readonly kept: KeptAudit;
  readonly #deps: AuditDeps;
  readonly #findings: OrderedFindings;
  readonly #parts: Parts;
  readonly #newer = newerEvents();

  constructor(deps: AuditDeps) {
    const states = streamStates(deps.scratch);
    this.#deps = deps;
    this.kept = keptAudit(deps, states);
    this.#findings = orderedFindings(deps, states, this.kept.saved?.findings);
    this.#parts = partsOf(deps, states, this.kept.saved);
  }

  /** What the record says of the chain, for `auditAgainstChain` after `finish`. */
  get stated() {
    const { chain, refunds } = this.#parts;
    const { standing, chargeOf, unconfirmed } = chain;
    const compared = { ...chain.compared, refund: refunds.compared };
    return { standing, chargeOf, unconfirmed, refunds: refunds.stated, compared };
  }

  /** Reports the findings of the audits that this one continues; once, before the first event. */
  repeatFindings(): void {
    this.#findings.repeat();
  }

  /** One call after another, in global order from the log's first event on, or from the first that is new. */
  async take(recorded: RecordedEvent): Promise<void> {
    const { id, stream, revision } = recorded;
    const location = locationOf(recorded);
    this.kept.taken(recorded);
    const faults = this.#parts.order.take(recorded);
    this.#report(faults, location);
    this.#deps.scratch.note(id, `${revision} ${stream}`);
    if (faults.some(({ kind }) => kind === 'event_unreadable')) return;
    const newer = newerKind(recorded);
    if (newer !== null) this.#newer.note(newerText(newer), location);
    // What follows from an event that is not read is not known.
    if (this.#newer.count() > 0) return;
    const event = readEvent(recorded);
    const misplaced = event === null ? UNREADABLE : streamFault(event, stream);
    if (misplaced !== null) this.#report([misplaced], location);
    if (event === null) return;
    // Leaves count by their types, in any stream.
    if (misplaced !== null) this.#parts.tree.leaf(location, event, null);
    else if (isJobEvent(event)) this.#job(recorded, event, location);
    else if (isKeyEvent(event)) this.#key(event, location);
    else this.#report(await judge(this.#parts, recorded, event, location), location);
    if (event.type === 'CheckpointSigned' && misplaced === null) this.kept.checkpoint(event.data.note);
    await this.#findings.settle(2 * VERIFICATIONS, VERIFICATIONS);
  }

  /** In place of events that cannot be read, between those that can. */
  takeDamaged(damage: Damage): void {
    const finding = damageFinding(damage);
    const { kind: _, message: __, ...location } = finding;
    this.#report(this.#parts.order.takeDamaged(damage), location);
    this.#findings.add([finding]);
    if (damage.stream !== null && location.jobId !== null)
      this.#parts.jobs.takeDamaged(damage.stream, location);
  }

  /** Reports the findings that need the whole record; call once. */
  async finish() {
    await this.#findings.settle(0, 0);
    const { order, jobs, chain, refunds, keys, tree, witnesses, money } = this.#parts;
    const canContinue = this.#newer.count() === 0 && order.counts.damaged === 0;
    this.kept.end(canContinue ? { ...foldsOf(this.#parts), findings: this.#findings.count() } : null);
    let findings = this.#findings.count();
    for await (const { fault, location } of endFindings(this.#parts, this.#newer, this.#deps)) {
      findings++;
      this.#deps.onFinding(findingOf(fault, location));
    }
    const { uncoveredLeaves, unfitCheckpoints, ...logged } = tree.summary();
    return {
      ...order.counts,
      ...jobs.counts,
      comparisons: chain.comparisons(),
      refunds: refunds.count(),
      keys: keys.list().length,
      ...logged,
      witnessed: witnesses.summary(),
      findings,
      /** Events that only a newer release reads: from the first on, only order, ids and damage were audited. */
      newer: this.#newer.count(),
      /** Facts that are no findings. */
      notes: { openJobs: jobs.open(), ...money.open(), uncoveredLeaves, unfitCheckpoints },
    };
  }

  /** Frees the scratch space, also of an audit that is abandoned. */
  close(): void {
    this.#deps.scratch.close();
  }

  #job(recorded: RecordedEvent, event: JobEvent, location: EventLocation): void {
    const { faults, payload, verified } = this.#parts.jobs.take(recorded, event, location);
    this.#report([...faults, ...this.#parts.tree.leaf(location, event, payload)], location);
    if (verified !== null)
      this.#findings.add(verified.then((found) => found.map((each) => findingOf(each, location))));
  }

  #key(event: KeyEvent, location: EventLocation): void {
    this.#parts.tree.leaf(location, event, null);
    const { faults, ended } = this.#parts.keys.take(event);
    this.#report(faults, location);
    for (const receipt of ended === null ? [] : this.#parts.jobs.revoked(...ended))
      this.#report([revokedFault(location)], receipt);
  }

  #report(faults: readonly Fault[], location: EventLocation): void {
    if (faults.length > 0) this.#findings.add(faults.map((each) => findingOf(each, location)));
  }
}

type Parts = ReturnType<typeof partsOf>;

/** Of a receipt whose key is retired by a later event, at this location, from before the receipt on. */
const revokedFault = ({ stream, revision }: EventLocation): Fault =>
  fault(
    'receipt_key_invalid',
    `The receipt was issued after the end of its key, which ${stream} revision ${revision} records later.`,
  );

/** One for each subject. */
function partsOf({ primitives, kept: evidence }: AuditDeps, states: StreamStates, saved: Folds | null) {
  const keys = auditKeys(evidence?.keys ?? null, saved?.keys);
  const kept = auditKept(evidence?.checkpoints ?? [], primitives);
  const tree = auditTree(states, primitives, saved?.tree);
  const witnesses = auditWitnesses(evidence?.policy ?? null, primitives, saved?.witnesses);
  const money = auditMoney(states, saved?.books);
  const schedules = auditSchedules(states);
  const completed: typeof money.completed = (event, job) => [
    ...money.completed(event, job),
    ...schedules.completed(event.data),
  ];
  const started: typeof money.started = (event) => [
    ...money.started(event),
    ...schedules.started(event.data),
  ];
  const others = { started, completed, from: saved?.jobs };
  const jobs = auditJobs({ states, primitives, keys: keys.list, leaves: tree.size, ...others });
  const order = auditOrder(states, saved?.order);
  const refunds = auditRefunds(states, saved?.refunds);
  const chain = auditChain(states, saved?.chain);
  return { order, keys, kept, tree, witnesses, money, refunds, chain, jobs, schedules };
}

const foldsOf = ({ order, jobs, keys, tree, witnesses, money, refunds, chain }: Parts) => ({
  order: { ...order.counts },
  jobs: { ...jobs.counts },
  keys: keys.list(),
  tree: tree.fold(),
  witnesses: witnesses.fold(),
  books: money.books(),
  refunds: refunds.count(),
  chain: chain.fold(),
});

/** The faults of an event in its right stream. */
function judge(
  { money, refunds, chain, tree, keys, witnesses, schedules }: Parts,
  recorded: RecordedEvent,
  event: Exclude<DomainEvent, JobEvent | KeyEvent>,
  location: EventLocation,
): readonly Fault[] | Promise<readonly Fault[]> {
  const { stream } = recorded;
  if (isClaimEvent(event)) return money.claim(stream, event);
  if (isScheduleEvent(event)) return schedules.take(stream, event);
  if (isPaymentEvent(event)) {
    const faults = chain.following(stream, () => money.payment(stream, event));
    if (event.type !== 'PaymentRefunded') return faults;
    return [...faults, ...refunds.recorded(stream, event, location)];
  }
  switch (event.type) {
    case 'RefundClaimed':
      return refunds.claimed(stream, event, location);
    case 'DecisionRecorded':
      return money.decision(recorded, event);
    case 'ChainReconciled':
      return chain.round(event.data, location);
    case 'CheckpointSigned':
      return tree.checkpoint(event, keys.list());
    case 'CheckpointCosigned':
      return tree
        .cosigned(event, keys.list())
        .then(async (faults) => [...faults, ...(await witnesses.cosigned(event, faults.length === 0))]);
    default:
      return event satisfies never;
  }
}

const largerOf = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.max(a, b);

/** What only the whole record shows. */
async function* endFindings(
  parts: Parts,
  newer: ReturnType<typeof newerEvents>,
  deps: AuditDeps,
): AsyncGenerator<Found> {
  yield* newer.found();
  if (newer.count() === 0) yield* recordFindings(parts, deps);
  yield* repeatedIds(deps.scratch);
}

/** Of the parts that take no event behind one that is not read. */
async function* recordFindings(parts: Parts, { kept: evidence }: AuditDeps): AsyncGenerator<Found> {
  const { keys, kept, tree, witnesses, money, refunds, chain, jobs } = parts;
  const nowhere = (faults: Iterable<Fault>) => [...faults].map((fault) => ({ fault, location: NOWHERE }));
  yield* jobs.unfinished();
  const late = tree.late();
  if (late !== null) yield late;
  yield* nowhere(keys.missing());
  yield* nowhere(await kept.faults(evidence?.keys ?? keys.list(), tree.factsOf));
  yield* nowhere(await witnesses.kept(evidence?.checkpoints ?? [], kept.isContinued));
  yield* jobs.unproven((time) => largerOf(kept.before(time), witnesses.before(time)));
  yield* nowhere(money.unbalanced());
  yield* nowhere(refunds.void());
  yield* nowhere(chain.unbalanced(money.books()));
}

/** Ids are random: an honest relay writes none twice. */
function* repeatedIds(scratch: AuditDeps['scratch']): Generator<Found> {
  for (const { value, place } of scratch.repeated()) {
    const space = place.indexOf(' ');
    const [revision, stream] = [place.slice(0, space), place.slice(space + 1)];
    const location = { stream, revision, jobId: jobOfStream(stream), position: null };
    yield { fault: fault('event_id_repeated', `Another event has the same id, ${value}.`), location };
  }
}

/**
 * Signatures are verified in other threads: up to twice as many at a time, and as many while the events are read on. Enough
 * to keep the threads busy, with little memory.
 */
const VERIFICATIONS = 256;

const UNREADABLE: Fault = fault(
  'event_unreadable',
  'The event has the data of no released event type and version.',
);

/** Of the events that only a newer release reads, the first, their number, and their types and versions. */
function newerEvents() {
  const kinds = new Set<string>();
  let first: EventLocation | null = null;
  let count = 0;
  return {
    count: () => count,
    note(text: string, location: EventLocation): void {
      first ??= location;
      count++;
      kinds.add(text);
    },
    found: (): readonly Found[] =>
      first === null ? [] : [{ fault: newerFault([...kinds].sort().join(', '), count), location: first }],
  };
}

const newerFault = (kinds: string, count: number): Fault =>
  fault(
    'event_of_newer_release',
    `${count === 1 ? 'The event was' : `This event is the first of ${count} that were`} written by a newer release (${kinds}). What follows is audited by that release only.`,
  );
