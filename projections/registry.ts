// The list of read models: what the runner projects, a rebuild builds again and a purge deletes from.
// It leaves the order of events, batches and transactions to the runner.
import type { PgTable } from 'drizzle-orm/pg-core';
import type { DomainEvent } from '#src/domain/events.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { projectDecision } from './decision/project.ts';
import { decisions } from './decision/table.ts';
import { projectJob } from './job/project.ts';
import { jobs } from './job/table.ts';
import { projectMonitoring } from './monitoring/project.ts';
import { monitoringHours, monitoringMinutes, monitoringTotals, runningJobs } from './monitoring/table.ts';
import { projectProof } from './proof/project.ts';
import { proofs } from './proof/table.ts';
import { projectReceipt } from './receipt/project.ts';
import { receipts, revokedKeys } from './receipt/table.ts';
import { type GrownLeaf, projectTransparency } from './transparency/project.ts';
import {
  transparencyCheckpoint,
  transparencyLeaves,
  transparencyTiles,
  transparencyTree,
} from './transparency/table.ts';
import { projectTrust } from './trust/project.ts';
import { trustMinutes, trustOpenPayments, trustTotals } from './trust/table.ts';

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

export type ReadModel = {
  /** Letters only. Another name is another model: its rows are projected again from the log's first event. */
  readonly name: string;
  /** Incremented whenever `project` or a table changes the content of the rows: rows of an older version need a rebuild. */
  readonly version: number;
  readonly tables: readonly PgTable[];
  /** Never throws on an event that `decodeEvent` lets through. */
  project(event: DomainEvent, facts: Facts): readonly Change[];
};

export const READ_MODELS: readonly ReadModel[] = [
  { name: 'job', version: 2, tables: [jobs], project: projectJob },
  { name: 'receipt', version: 2, tables: [receipts, revokedKeys], project: projectReceipt },
  { name: 'proof', version: 1, tables: [proofs], project: projectProof },
  {
    name: 'monitoring',
    version: 2,
    tables: [monitoringMinutes, monitoringHours, monitoringTotals, runningJobs],
    project: projectMonitoring,
  },
  {
    name: 'trust',
    version: 3,
    tables: [trustTotals, trustMinutes, trustOpenPayments],
    project: projectTrust,
  },
  {
    name: 'transparency',
    version: 1,
    tables: [transparencyTree, transparencyTiles, transparencyLeaves, transparencyCheckpoint],
    project: projectTransparency,
  },
  { name: 'decision', version: 1, tables: [decisions], project: projectDecision },
];
