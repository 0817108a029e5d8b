// A read store as a rebuild needs it: one connection of its own, long statements, rows in bulk.

/** `Db`: as in `ReadStore`. */
export interface RebuildStore<Db> {
  /** The read models' schema at this version. */
  readonly schema: {
    /** Changes with every migration. */
    readonly version: string;
    /** All migrations in order, without a schema's name: run under another `search_path`, they make the tables there. */
    readonly statements: readonly string[];
  };
  /** Whether its transactions have `copy`. */
  readonly copies: boolean;
  /** How the schema of the live tables stands to this one, as this transaction sees it. */
  liveSchema(db: Db): Promise<LiveSchema>;
  /** Brings the live tables to this schema. */
  migrate(): Promise<void>;
  /**
   * One transaction, rolled back where `work` throws. All of them run in one session, so that a session's lock is held
   * between them; where the connection was lost there is another session, without that lock.
   */
  transaction<T>(work: (tx: RebuildTransaction<Db>) => Promise<T>, isolation?: 'repeatable read'): Promise<T>;
  close(): Promise<void>;
}

/** `newer`: a later version of this program has migrated it. */
export type LiveSchema = 'older' | 'this' | 'newer';

export type RebuildTransaction<Db> = {
  readonly db: Db;
  /**
   * Adds rows to a table of the `search_path` by COPY. `text`: lines of PostgreSQL's text format, one a row, with the
   * columns in this order. Throws where a row is refused; the transaction is lost then. null: this store has none.
   */
  readonly copy: ((table: string, columns: readonly string[], text: string) => Promise<void>) | null;
};
