// Stores the newest checkpoint of this deployment outside of the event log: a restore of the log does not replace it.

export interface CheckpointStore {
  /** For messages: a noun with its article. */
  readonly location: string;
  /** The content, not validated; null if there is none. Throws if it cannot be read. */
  read(): Promise<string | null>;
  /** Replaces the content; durable before it resolves. Throws if it cannot be written. */
  write(note: string): Promise<void>;
}
