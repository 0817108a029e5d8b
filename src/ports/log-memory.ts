// Remembers outside of the event log which one is in use: a restore or a loss of the log does not change it.
import type { KnownLog } from '#src/domain/signing-keys/known-log.ts';

export interface LogMemory {
  /** The file, for messages. */
  readonly place: string;
  /** null: none. Throws if it cannot be read. */
  read(): KnownLog | null;
  /** Replaces the content; durable when it returns. Throws if it cannot be written. */
  write(log: KnownLog): void;
}
