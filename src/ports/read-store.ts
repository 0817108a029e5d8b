// Where the read models' rows are: never the truth, always to be had again from the event log.

/** `Db`: the handle that queries run on; the rooms that query know its type, ports do not. */
export interface ReadStore<Db> {
  readonly driver: 'postgres' | 'pglite';
  /** true: the rows may be thrown away and replayed from the log without asking anybody. */
  readonly disposable: boolean;
  /**
   * The handle, with the schema at this version: connects and migrates at first, then answers at once with the same
   * handle. Throws while the store is away or its schema cannot be brought to this version; a later call tries again.
   * Calls at the same time share one attempt. It is another handle after connections were lost, and where a disposable
   * store has proved damaged: that one is thrown away and made anew by the next call, without row or checkpoint. So ask
   * for the handle each time, and what follows the rows must look for their checkpoint under another handle.
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
