// Scratch storage of an audit. It is on disk, because its size grows with the log.
import type { Json } from '../domain/canonical-json.ts';

/**
 * For one audit in one process: local, fast and synchronous. The implementer limits the memory used. Every call throws if
 * the storage fails. Keys are well-formed text without U+0000; they are listed in their order.
 */
export interface AuditScratch<T extends Json> {
  /** Returns a value equal to the one put, perhaps the same object: callers must not change it. */
  get(key: string): T | null;
  /** Of a key that was put: throws if it has no value. */
  demand(key: string): T;
  /**
   * `added`: about how many characters the value's JSON has more than the key's value before; without it they are counted.
   * `isOpen`: `open` lists the key, until it is put without it.
   */
  put(key: string, value: T, added?: number, isOpen?: boolean): void;
  /** The values whose keys begin with `prefix` (not empty, ASCII at its end); nothing may be put meanwhile. */
  values(prefix: string): Iterable<T>;
  /** Of the open keys that begin with `prefix` and follow `after` (null: all), the first `max`. */
  open(
    prefix: string,
    after: string | null,
    max: number,
  ): readonly { readonly key: string; readonly value: T }[];
  /** Notes a value and where it is. Many: they are not kept in memory. */
  note(value: string, place: string): void;
  /** The notes of values that were noted before, in the order of the values; nothing may be put or noted meanwhile. */
  repeated(): Iterable<{ readonly value: string; readonly place: string }>;
  /** Deletes what was not saved. */
  close(): void;
}

/** Of an audit that a later one continues. */
export interface AuditState<T extends Json> extends AuditScratch<T> {
  /** false: an earlier audit has saved it. */
  readonly isNew: boolean;
  /** Once, at the end. What was put and noted is durable when it returns; before, nothing of it is. */
  save(): void;
}
