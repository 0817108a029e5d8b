// The store of the read models' rows. They can always be rebuilt from the event log.
import { OperatorError } from '#src/lib/operator-error.ts';

/** `Db`: the handle that queries run on; the rooms that query know its type, ports do not. */
export interface ReadStore<Db> {
  /** true: rows may be deleted and rebuilt from the log without confirmation; one process uses them. */
  readonly disposable: boolean;
  readonly layout: TableLayout;
  /**
   * A handle for the tables that belong to no generation, migrated to this version: connects and migrates first, then
   * returns at once. Throws while the store is unavailable; a later call tries again. Parallel calls share one attempt.
   */
  shared(): Promise<Db>;
  /**
   * A handle whose unqualified table names are those of `schema` alone. The same handle, or another one when other schemas
   * were opened since; so call `open` each time.
   */
  open(schema: string): Promise<Db>;
  /**
   * In one transaction on `schema`: runs the statement and, if the first column of its row is true, adds the new rows, at a
   * third of what statements cost. Absent: the store cannot.
   */
  copyRows?(schema: string, statement: Statement, rows: readonly CopiedRows[]): Promise<boolean>;
  /** Queries the store; a damaged one is not ok. `refusal`: the words of its server, or what prevents its use. Resolves within its own time limit; never throws. */
  health(): Promise<{ readonly ok: true } | { readonly ok: false; readonly refusal?: string }>;
  /** Frees everything, after the transactions in flight. */
  close(): Promise<void>;
}

export type Statement = { readonly sql: string; readonly params: readonly unknown[] };

/** `text`: what COPY reads, a line each. */
export type CopiedRows = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly text: string;
};

export type TableLayout = {
  /** Changes with every migration. */
  readonly version: string;
  /** All migrations in order, without a schema's name: under a `search_path` they create the tables there. */
  readonly statements: readonly string[];
};

/** Another process has the embedded read models open: one process only. */
export class ReadStoreInUse extends OperatorError {
  /** The process that holds them, where it could be read. */
  readonly pid: number | null;
  constructor(pid: number | null) {
    super(`the embedded read models are in use by process ${pid ?? 'unknown'}`);
    this.pid = pid;
  }
}
