// Where the read models' rows are: never the truth, always to be had again from the event log.

/** `Db`: the handle that queries run on; the rooms that query know its type, ports do not. */
export interface ReadStore<Db> {
  readonly driver: 'postgres' | 'pglite';
  /** true: the rows may be thrown away and replayed from the log without asking anybody. */
  readonly disposable: boolean;
  /**
   * The handle, with the schema at this version: connects and migrates at first, then answers at once with the same
   * handle. Throws while the store is away or its schema cannot be brought to this version; a later call tries again.
   * Calls at the same time share one attempt. A disposable store that has proved damaged is thrown away and made anew
   * by the next call: the handle is another one then, and there is no row, nor a checkpoint.
   */
  open(): Promise<Db>;
  /** Asks the store; one that has proved damaged is not ok. Resolves within its own time limit; never throws. */
  health(): Promise<{ readonly ok: boolean }>;
  /** Frees everything, after the transactions in flight. */
  close(): Promise<void>;
}

/** Another process has the embedded read models open: one process only. */
export class ReadStoreInUse extends Error {
  /** The process that holds them, where it could be read. */
  readonly pid: number | null;
  constructor(pid: number | null) {
    super(`the embedded read models are in use by process ${pid ?? 'unknown'}`);
    this.name = 'ReadStoreInUse';
    this.pid = pid;
  }
}
