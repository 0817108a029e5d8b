// The list of read models. Everything else follows from it: what the runner projects, a rebuild builds again, a purge
// deletes, and which queries there are. Each model is declared in its folder.
import type { SQL } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { DomainEvent } from '#src/domain/events.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { decision } from './decision/model.ts';
import { job } from './job/model.ts';
import { monitoring } from './monitoring/model.ts';
import { proof } from './proof/model.ts';
import { receipt } from './receipt/model.ts';
import type { Db } from './rows.ts';
import { transparency } from './transparency/model.ts';
import type { GrownLeaf } from './transparency/project.ts';
import { trust } from './trust/model.ts';

/** A model's name is letters only. Another name is another model: its rows are projected again from the first event. */
export const MODELS = declared({ job, receipt, proof, monitoring, trust, transparency, decision });

/** A row under its columns' TypeScript names, without the position that the runner keeps beside it. */
export type Row = Readonly<Record<string, unknown>>;

/** What one event does to one row. One event changes a row at most once. */
export type Change = {
  /** The table's name in the database. */
  readonly table: string;
  /** The row's primary key. */
  readonly key: string;
  /** Pure, and total: null in is a row that is not there, null out a row to delete. */
  apply(row: Row | null): Row | null;
};

/** Facts that need further lookups: collected before projecting, so that projecting stays pure. */
export type Facts = {
  /** `ReceiptSigned`: signature valid and key valid at issue, by the key events before it. Else false. */
  readonly receiptVerified: boolean;
  /** `ReceiptSigned`: what it states, in a version that is known; else null. */
  readonly payload: ReceiptPayload | null;
  /** What the event adds to the transparency log's tree, by all leaves before it; null for most. */
  readonly leaf: GrownLeaf | null;
};

/** What projects and rebuilds a model's rows. */
export type ReadModel = {
  readonly name: string;
  /** Incremented whenever `project` or a table changes the content of the rows: rows of an older version need a rebuild. */
  readonly version: number;
  readonly tables: readonly PgTable[];
  /** Never throws on an event that `decodeEvent` lets through. */
  project(event: DomainEvent, facts: Facts): readonly Change[];
};

export const READ_MODELS: readonly ReadModel[] = Object.entries(MODELS).map(([name, model]) => ({
  ...model,
  name,
}));

/** Rows that a horizon covers, by a time in their own columns that no later event changes. */
export type Retained = {
  readonly table: string;
  readonly time: string;
  /** Rows that may be deleted. */
  readonly ended: SQL;
  /** Rows of jobs are kept as long as jobs, the others as long as receipts. */
  readonly horizon: 'jobs' | 'receipts';
};

export const RETAINED: readonly Retained[] = Object.values(MODELS).flatMap((model) =>
  'retained' in model ? [model.retained] : [],
);

/** `rows`: a row that is not projected yet is missing. `whole`: counts and lists, whose answer would be wrong until then. */
export type Needs = 'rows' | 'whole';

type Queries = (db: Db) => object;
type Declared = Omit<ReadModel, 'name'> & { readonly queries: Queries; readonly retained?: Retained };
type NeedsOf<Q extends Queries> = { readonly [N in keyof ReturnType<Q>]: Needs };

/** Each query has an entry in `needs`. */
function declared<M extends Readonly<Record<string, Declared>>>(
  models: M & { readonly [N in keyof M]: { readonly needs: NeedsOf<M[N]['queries']> } },
): M {
  return models;
}
