// What a read model consists of, and what one event does to its rows.
import type { PgTable } from 'drizzle-orm/pg-core';
import type { DomainEvent } from '#src/domain/events.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import type { LedgerRow } from './payment/project.ts';
import type { GrownLeaf } from './transparency/project.ts';

/** A row under its columns' TypeScript names, without the position that is kept beside it. */
export type ModelRow = Readonly<Record<string, unknown>>;

export type Change = RowChange<string, ModelRow>;

/** Facts that need further lookups: collected before projecting, so that projecting stays pure. */
export type RecordedFacts = {
  /** `ReceiptSigned`: signature valid and key valid at issue, by the key events before it. Else false. */
  readonly receiptVerified: boolean;
  /** `ReceiptSigned`: what it states, in a version that is known; else null. */
  readonly payload: ReceiptPayload | null;
  /** What the event adds to the transparency log's tree, by all leaves before it; null for most. */
  readonly leaf: GrownLeaf | null;
  /** The rows of the ledger of payments that the event changes, as it leaves them; none for most. */
  readonly ledger: readonly LedgerRow[];
};

export type ReadModel = {
  readonly name: string;
  /** Incremented whenever `project` or a table changes the content of the rows: rows of an older version need a rebuild. */
  readonly version: number;
  readonly tables: readonly PgTable[];
  /** Never throws on an event that `decodeEvent` lets through. */
  project(event: DomainEvent, facts: RecordedFacts): readonly Change[];
};
