// Keeps the newest checkpoint of this deployment outside of the event log, where a restore of the log does not replace it.

export interface CheckpointKeep {
  /** For a message: a noun with its article. */
  readonly place: string;
  /** The content, whatever it is; null if there is none. Throws if it cannot be read. */
  read(): Promise<string | null>;
  /** Replaces the content; durable before it resolves. Throws if it cannot be written. */
  write(note: string): Promise<void>;
}
