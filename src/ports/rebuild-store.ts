// A read store as a rebuild needs it: one connection of its own, long statements, rows in bulk.
import type { TableLayout } from './read-store.ts';

/** `Db`: as in `ReadStore`. */
export interface RebuildStore<Db> {
  readonly disposable: boolean;
  readonly layout: TableLayout;
  /** Migrates the tables that belong to no generation. */
  migrate(): Promise<void>;
  /**
   * One transaction, rolled back if `work` throws. All of them run in one session, so a session's lock is held between
   * them; after a lost connection there is another session, without that lock.
   */
  transaction<T>(work: (tx: RebuildTransaction<Db>) => Promise<T>, isolation?: 'repeatable read'): Promise<T>;
  close(): Promise<void>;
}

export type RebuildTransaction<Db> = {
  readonly db: Db;
  /**
   * Adds rows to a table of the `search_path` by COPY. `text`: lines of PostgreSQL's text format, one a row, with the
   * columns in this order. Throws if a row is refused; the transaction is lost then. null: this store has no COPY.
   */
  readonly copy: ((table: string, columns: readonly string[], text: string) => Promise<void>) | null;
};
