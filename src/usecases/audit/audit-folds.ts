// What an audit has in memory at its end, as text: with the rows of its scratch space it is all that a later audit needs to
// continue it.

import type { Books } from '#src/domain/payment/ledger.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { ChainFold } from './audit-log-chain.ts';
import type { JobCounts } from './audit-log-jobs.ts';
import type { TreeFold } from './audit-log-tree.ts';
import type { WitnessFold } from './audit-log-witnesses.ts';
import type { OrderCounts } from './check-integrity.ts';

/** An event of the log. `revision`: decimal. */
export type EventRef = {
  readonly stream: string;
  readonly revision: string;
  readonly id: string;
  readonly position: string;
};

export type Folds = {
  /** What wrote it: another release may judge otherwise. */
  readonly release: string;
  /** SHA-256 of the trusted keys and the policy, hex: events were judged with them. */
  readonly evidence: string;
  /** Of events: those of the end are made again. */
  readonly findings: number;
  readonly last: EventRef | null;
  /** The last one that the record has. */
  readonly checkpoint: (EventRef & { readonly note: string }) | null;
  readonly order: OrderCounts;
  readonly jobs: JobCounts;
  readonly keys: readonly KeyRecord[];
  readonly tree: TreeFold;
  readonly witnesses: WitnessFold;
  readonly books: Books;
  readonly refunds: number;
  readonly chain: ChainFold;
};

export const foldsText = (folds: Folds): string =>
  JSON.stringify(folds, (_, value: unknown) =>
    typeof value === 'bigint' ? { bigint: String(value) } : value,
  );

/** Of a text that `foldsText` has written. */
export const foldsOf = (text: string): Folds =>
  JSON.parse(text, (_, value) => (typeof value?.bigint === 'string' ? BigInt(value.bigint) : value));
