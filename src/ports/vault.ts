// The vault: keys of sealed texts, kept outside the event log so that they can be deleted. The ciphertext is the caller's.
import { Fault } from '#src/domain/refusal.ts';

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

/** The same request can be repeated, with the same payment header if it has one. */
export class VaultUnavailable extends Fault {
  constructor(cause: unknown) {
    const message =
      'The keys of the schedules are unavailable. Repeat the request, with the same payment header if it has one.';
    super('read_models_unavailable', message, { cause, retryAfterSeconds: 5 });
    this.name = 'VaultUnavailable';
  }
}
