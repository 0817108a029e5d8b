// Where an audit keeps what it must find again: as large as the log needs, outside the memory of the process.
import type { Json } from '../domain/canonical-json.ts';

/**
 * Keys are well-formed text without U+0000. Values are JSON and come back equal to what was put; they may be the same
 * object, so nobody changes one.
 */
export interface ScratchTable<T extends Json> {
  get(key: string): T | null;
  put(key: string, value: T): void;
  delete(key: string): void;
  /**
   * The entries whose keys begin with `prefix`, in order of the keys' UTF-8 bytes. What is put or deleted while they are
   * read may be among them or not.
   */
  entries(prefix?: string): Iterable<readonly [key: string, value: T]>;
}

/**
 * For one audit and one process: local, fast and synchronous, kept nowhere after `close`. What it holds in memory is
 * bounded by the implementer, whatever is put. Not durable. A fault of its storage throws.
 */
export interface AuditScratch {
  /** The same table for the same name. */
  table<T extends Json>(name: string): ScratchTable<T>;
  close(): void;
}
