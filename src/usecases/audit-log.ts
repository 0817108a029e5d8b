// An audit of the whole record: every event once, in the log's order, and nothing else. Where the events come from, a log
// or an exported file, is the caller's.
import type { Finding } from '../domain/audit/finding.ts';
import type { Primitives } from '../domain/receipt/verify.ts';
import type { RecordedEvent } from '../domain/recorded.ts';
import type { AuditScratch } from '../ports/audit-scratch.ts';

export type AuditDeps = {
  readonly primitives: Primitives;
  /** The caller's to close. */
  readonly scratch: AuditScratch;
  /** Called as each is found, in no order that means anything. */
  readonly onFinding: (finding: Finding) => void;
};

/** What is no fault of the record, and still worth knowing. */
export type AuditNotes = {
  /** Jobs that run, or whose process died and that nobody has closed yet. */
  readonly openJobs: number;
  /** Payments that settled and whose job never started. */
  readonly unservedPayments: number;
  /** Payments of which the record does not say whether the money moved. */
  readonly unconfirmedPayments: number;
  /** Leaves that no checkpoint covers yet. */
  readonly uncoveredLeaves: number;
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
  /** Position of the last event; null where there is none. */
  readonly head: string | null;
  readonly findings: number;
  readonly notes: AuditNotes;
};

export type Auditor = {
  /** One call after another, in global order from the log's first event on. */
  take(event: RecordedEvent): Promise<void>;
  /** What only the end can tell; once. */
  finish(): Promise<AuditSummary>;
  /** Frees what it holds; also where it is given up. */
  close(): void;
};

export function makeAuditor(deps: AuditDeps): Auditor {
  throw new Error(`not written yet: ${Object.keys(deps).length}`);
}
