// The newest checkpoint of this deployment, where a restore of the event log does not take it back.

export interface CheckpointKeep {
  /** Where it is, for a person: a noun with its article. */
  readonly place: string;
  /** Whatever is kept there; null: nothing. Throws where that cannot be read. */
  read(): Promise<string | null>;
  /** In the place of what is there; durable before it resolves. Throws where it cannot be written. */
  write(note: string): Promise<void>;
}
