// What an audit keeps of each stream: one row, whatever checks it is for.

import type { EventLocation, Finding } from '#src/domain/audit/finding.ts';
import type { StatedRefund } from '#src/domain/audit/judge-chain.ts';
import type { DecisionOfJob, PaymentHistory } from '#src/domain/audit/judge-payment.ts';
import type { RefundHistory } from '#src/domain/audit/judge-refund.ts';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import type { ChainReconciled } from '#src/domain/events/payment.ts';
import { STREAM } from '#src/domain/events.ts';
import type { Job } from '#src/domain/job/state.ts';
import type { Claim } from '#src/domain/payment/claim.ts';
import { isBound, isCorrected, isMissing } from '#src/domain/payment/state.ts';
import type { Schedule, Ticket } from '#src/domain/schedule/state.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

/** `revision`: decimal. */
export type StoredEvent = {
  readonly stream: string;
  readonly revision: string;
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
};

/**
 * A job without a receipt so far. `lost`: its start is not in the record; `damaged`: one of its events cannot be read. The
 * consequences are not reported.
 */
export type OpenJob = {
  readonly job: Job;
  readonly events: readonly StoredEvent[];
  readonly last: EventLocation;
  readonly lost: boolean;
  readonly damaged?: true;
};

/** A job with its receipt. `keyId`: that the event names. `iat`: Unix seconds; null if the receipt cannot be read. */
export type ReceiptedJob = {
  readonly job: null;
  readonly keyId: string;
  readonly iat: number | null;
  /** Index of the receipt in the transparency log, from 0. */
  readonly leaf: number;
  readonly last: EventLocation;
};

/**
 * A leaf of the transparency log. `due`: Unix seconds by which a checkpoint has to cover it; null: no time was promised.
 * `subtree`: root of the largest complete subtree that ends with it, base64. `latest`: the latest time that it or a leaf
 * before it states, Unix seconds.
 */
export type Leaf = {
  readonly location: EventLocation;
  readonly due: number | null;
  readonly subtree: string;
  readonly latest: number;
};

/** A comparison with the chain. `before`: name of the row of the round that stands before it; null: there is none. */
export type AuditedRound = {
  readonly round: ChainReconciled;
  readonly location: EventLocation;
  readonly before: string | null;
  /** false: a later round has replaced it. */
  readonly stands: boolean;
  /** With the chain, which has all that it states. */
  readonly isCompared: boolean;
};

export type RefundStated = StatedRefund & { readonly location: EventLocation; readonly isCompared: boolean };

/** A charge. `isOver`: a round that stands has confirmed it, or it was compared with the chain. */
export type AuditedCharge = { readonly stream: string; readonly isOver: boolean };

type Kinds = {
  readonly job: OpenJob | ReceiptedJob;
  readonly payment: PaymentHistory;
  /** Of the reservation of a payment for a job. */
  readonly ended: true;
  readonly claim: Claim;
  readonly refund: RefundHistory;
  readonly decision: DecisionOfJob;
  readonly schedule: Schedule;
  /** Of a run that was started and skipped. */
  readonly skippedRun: Ticket;
  /** It started when its run was skipped already. */
  readonly lateJob: true;
  readonly leaf: Leaf;
  readonly round: AuditedRound;
  /** Of a payment: name of the row of the last round that confirmed it. */
  readonly confirmedBy: string;
  readonly charge: AuditedCharge;
  readonly stated: RefundStated;
  /** Of an audit that a later one continues. */
  readonly finding: Finding;
  readonly folds: string;
};

/**
 * `next`: the next revision; 0 before the first event. A stream's events are of one kind: others are not judged. `owner`:
 * of the row for a value that only one owner may have.
 */
export type ScratchRow = {
  readonly next: number;
  readonly owner?: string;
} & Partial<Kinds>;

type State<K extends keyof Kinds> = NonNullable<ScratchRow[K]>;

export type StreamStates = ReturnType<typeof streamStates>;

export function streamStates(rows: AuditScratch<ScratchRow>) {
  const rowOf = (name: string): ScratchRow => rows.get(name) ?? NO_ROW;
  const put = (name: string, row: ScratchRow, added?: number): void =>
    rows.put(name, row, added, isOpen(row));
  return {
    /** An event has this revision; returns the one that was expected. */
    advance(stream: string, revision: number): number {
      const row = rowOf(stream);
      if (revision >= row.next) put(stream, { ...row, next: revision + 1 }, 0);
      return row.next;
    },
    get: <K extends keyof Kinds>(kind: K, stream: string): State<K> | null =>
      rows.get(stream)?.[kind] ?? null,
    /** Of a state that was put: throws if it is gone. */
    demand: <K extends keyof Kinds>(kind: K, stream: string): State<K> | null =>
      rows.demand(stream)[kind] ?? null,
    /** `added`: about how many characters the state's JSON has more than before; without it they are counted. */
    put: <K extends keyof Kinds>(kind: K, stream: string, state: Kinds[K], added?: number): void =>
      put(stream, { ...rowOf(stream), [kind]: state }, added),
    *all<K extends 'job' | 'payment' | 'refund'>(kind: K): Generator<State<K>> {
      for (const { [kind]: state } of rows.values(STREAM[kind](''))) if (state !== undefined) yield state;
    },
    /** Those to which something is left to do at the end. They may be put meanwhile. */
    *open<K extends Openable>(kind: K, prefix: string): Generator<readonly [name: string, State<K>]> {
      for (let last: string | null = null; ; ) {
        const page = rows.open(prefix, last, OPEN_PAGE);
        for (const { key, value } of page) {
          const state = value[kind];
          if (state !== undefined) yield [key, state];
        }
        last = page.at(-1)?.key ?? null;
        if (page.length < OPEN_PAGE) return;
      }
    },
    /** For a value that only one owner may have: the first owner, if that is another; null otherwise. */
    otherOwner(value: string, owner: string): string | null {
      const row = rowOf(value);
      if (row.owner === undefined) put(value, { ...row, owner });
      return row.owner === undefined || row.owner === owner ? null : row.owner;
    },
  };
}

type Openable = 'job' | 'payment' | 'round' | 'charge' | 'stated';

const OPEN_PAGE = 4096;

const isOpen = ({ job, payment, round, charge, stated }: ScratchRow): boolean =>
  (job !== undefined && job.job !== null) ||
  (payment !== undefined && isNoted(payment)) ||
  (round?.stands && !round.isCompared) ||
  charge?.isOver === false ||
  stated?.isCompared === false;

/** Whether the summary counts it among what is open. */
const isNoted = ({ payment, servedBy }: PaymentHistory): boolean =>
  payment.status === 'refunding' ||
  isCorrected(payment) ||
  isMissing(payment) ||
  (payment.status === 'settled' ? servedBy === null : isBound(payment));

const NO_ROW: ScratchRow = { next: 0 };

/** The number in a row's name, so that the order of the names is that of the numbers. */
export const ordinal = (number: number | string): string => String(number).padStart(20, '0');
