// Scratch tables of an audit. They are on disk, because their size grows with the log.
import type { Json } from '../domain/canonical-json.ts';

/**
 * Keys are well-formed text without U+0000. Values are JSON. `get` returns a value equal to the one put, perhaps the
 * same object: callers must not change it.
 */
export interface ScratchTable<T extends Json> {
  get(key: string): T | null;
  /** `characters`: about as many as the value's JSON has, where the caller knows it. */
  put(key: string, value: T, characters?: number): void;
  delete(key: string): void;
  /**
   * The entries whose keys begin with `prefix`, in order of the keys' UTF-8 bytes. An entry that is put or deleted during
   * the iteration may be returned or not.
   */
  entries(prefix?: string): Iterable<readonly [key: string, value: T]>;
}

/**
 * For one audit in one process: local, fast, synchronous and not durable; `close` deletes everything. The implementer
 * limits the memory used. Every call throws if the storage fails.
 */
export interface AuditScratch {
  /** Returns the same table for the same name. */
  table<T extends Json>(name: string): ScratchTable<T>;
  close(): void;
}
