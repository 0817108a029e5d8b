// Scratch storage of an audit. It is on disk, because its size grows with the log.
import type { Json } from '../domain/canonical-json.ts';

/**
 * Keys are well-formed text without U+0000. `get` returns a value equal to the one put, perhaps the same object: callers
 * must not change it.
 */
export interface ScratchTable<T extends Json> {
  get(key: string): T | null;
  /** `added`: about how many characters the value's JSON has more than the key's value before; without it they are counted. */
  put(key: string, value: T, added?: number): void;
  /** The entries whose keys begin with `prefix` (not empty, ASCII at its end), in any order; nothing may be put meanwhile. */
  entries(prefix: string): Iterable<readonly [key: string, value: T]>;
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
