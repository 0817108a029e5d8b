// What an audit keeps of each stream: one row, whatever checks it is for.

import type { EventLocation } from '#src/domain/audit/finding.ts';
import type { DecisionFacts, PaymentHistory } from '#src/domain/audit/judge-payment.ts';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import { STREAM } from '#src/domain/events.ts';
import type { Job } from '#src/domain/job/state.ts';
import type { Claim } from '#src/domain/payment/claim.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

/** `revision`: decimal. */
export type StoredEvent = {
  readonly stream: string;
  readonly revision: string;
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
};

/** A job without a receipt so far. `lost`: its start is not in the record; the consequences are not reported. */
export type OpenJob = {
  readonly job: Job;
  readonly events: readonly StoredEvent[];
  readonly last: EventLocation;
  readonly lost: boolean;
};

type Kinds = {
  /** Of a job's stream: the job held an idempotency key at some time, whether it started or not. */
  readonly claimed: true;
  /** `over`: it has its receipt. */
  readonly job: OpenJob | 'over';
  readonly payment: PaymentHistory;
  readonly claim: Claim;
  readonly decision: DecisionFacts;
};

/**
 * `next`: the next revision; 0 before the first event. `gap`: revisions before it are missing. A stream's events are of one
 * kind: others are not judged.
 */
type Row = { readonly next: number; readonly gap?: true } & Partial<Kinds>;

type State<K extends keyof Kinds> = NonNullable<Row[K]>;

export type StreamStates = ReturnType<typeof streamStates>;

export function streamStates(scratch: AuditScratch) {
  const rows = scratch.table<Row>('stream');
  const rowOf = (stream: string): Row => rows.get(stream) ?? NO_ROW;
  return {
    /** An event has this revision; returns the row before it. */
    advance(stream: string, revision: number): Pick<Row, 'next' | 'gap'> {
      const row = rowOf(stream);
      const gap = revision > row.next ? ({ gap: true } as const) : {};
      if (revision >= row.next) rows.put(stream, { ...row, next: revision + 1, ...gap }, 0);
      return row;
    },
    get: <K extends keyof Kinds>(kind: K, stream: string): State<K> | null =>
      rows.get(stream)?.[kind] ?? null,
    /** `added`: about how many characters the state's JSON has more than before; without it they are counted. */
    put: <K extends keyof Kinds>(kind: K, stream: string, state: Kinds[K], added?: number): void =>
      rows.put(stream, { ...rowOf(stream), [kind]: state }, added),
    *all<K extends Exclude<keyof Kinds, 'claimed'>>(kind: K): Generator<State<K>> {
      for (const [, row] of rows.entries(STREAM[kind](''))) {
        const state = row[kind];
        if (state !== undefined) yield state;
      }
    },
  };
}

const NO_ROW: Row = { next: 0 };
