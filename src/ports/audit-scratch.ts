// Scratch storage of an audit. It is on disk, because its size grows with the log.
import type { Json } from '../domain/canonical-json.ts';

/**
 * For one audit in one process: local, fast, synchronous and not durable. The implementer limits the memory used. Every
 * call throws if the storage fails. Keys are well-formed text without U+0000.
 */
export interface AuditScratch<T extends Json> {
  /** Returns a value equal to the one put, perhaps the same object: callers must not change it. */
  get(key: string): T | null;
  /** `added`: about how many characters the value's JSON has more than the key's value before; without it they are counted. */
  put(key: string, value: T, added?: number): void;
  /** The values whose keys begin with `prefix` (not empty, ASCII at its end), in any order; nothing may be put meanwhile. */
  values(prefix: string): Iterable<T>;
  /** Notes a value and where it is. Many: they are not kept in memory. */
  note(value: string, place: string): void;
  /** The notes of values that were noted before, in any order; nothing may be put meanwhile. */
  repeated(): Iterable<{ readonly value: string; readonly place: string }>;
  /** Deletes everything. */
  close(): void;
}
