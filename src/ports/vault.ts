// The vault: keys of sealed texts, kept outside the event log so that they can be deleted. The ciphertext is the caller's.

/** Each call throws `VaultUnavailable` while the keys cannot be read or written. */
export interface Vault {
  /**
   * Seals a text under a new random key, which is durable before this returns. `untilMs`: Unix ms after which the key may
   * be deleted. Returns the ciphertext.
   */
  put(text: string, untilMs: number): Promise<string>;
  /** The text of a ciphertext; null if its key is gone, or the ciphertext was changed. The key stays. */
  take(sealed: string): Promise<string | null>;
  /** Deletes the keys of ciphertexts: they cannot be read any more. Keys that are gone already do not matter. */
  remove(sealed: readonly string[]): Promise<void>;
  /** The clock of the store, Unix ms, which all processes share; null: they have the clock of one machine in common. */
  now(): Promise<number | null>;
  close(): Promise<void>;
}

export class VaultUnavailable extends Error {
  constructor(cause: unknown) {
    super('the vault of the schedules is unavailable', { cause });
    this.name = 'VaultUnavailable';
  }
}
