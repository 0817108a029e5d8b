// The store of the read models' rows. They can always be rebuilt from the event log.

/** `Db`: the handle that queries run on; the rooms that query know its type, ports do not. */
export interface ReadStore<Db> {
  readonly driver: 'postgres' | 'pglite';
  /** true: the rows may be deleted and replayed from the log without confirmation. */
  readonly disposable: boolean;
  /**
   * The handle, with the schema at this version: connects and migrates at first, then answers at once with the same
   * handle. Throws while the store is unavailable or its schema cannot be migrated; a later call tries again.
   * Calls at the same time share one attempt. It is another handle after connections were lost, and where a disposable
   * store is damaged: the next call then replaces it by an empty store. So call `open` each time; a subscriber must read
   * the projection position again under another handle.
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
