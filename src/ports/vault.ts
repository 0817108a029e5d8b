// The vault: keys of sealed texts, kept outside the event log so that they can be deleted. The ciphertext is the caller's.
import { Fault } from '#src/domain/refusal.ts';

export type Sealing = {
  /** What its key is stored under, without a dot. Repeated: the text is sealed under the key that is there. */
  readonly name: string;
  readonly text: string;
  /** Unix ms after which the key may be deleted. */
  readonly untilMs: number;
  /** Whose keys are counted, and how many there may be; null: it is not counted. */
  readonly seat: { readonly holder: string; readonly max: number } | null;
};

/** Each call throws `VaultUnavailable` while the keys cannot be read or written. */
export interface Vault {
  /**
   * Seals a text under a random key, which is durable before this returns. Returns the ciphertext; null: its holder has
   * `max` keys. However many processes seal at once, no holder has more.
   */
  put(sealing: Sealing): Promise<string | null>;
  /** How many keys the holder has. */
  held(holder: string): Promise<number>;
  /** The text of a ciphertext; null if its key is gone, or the ciphertext was changed. The key stays. */
  take(sealed: string): Promise<string | null>;
  /** Deletes keys: what was sealed under them cannot be read any more. Keys that are gone already do not matter. */
  remove(names: readonly string[]): Promise<void>;
  /** Of all keys. */
  names(): Promise<readonly string[]>;
  /** The clock of the store, Unix ms: a run is started only while that of the process agrees. null: there is none. */
  now(): Promise<number | null>;
  close(): Promise<void>;
}

/** The same request can be repeated, with the same payment header if it has one. */
export class VaultUnavailable extends Fault {
  /** Its content cannot be read at all, until the operator has put it back or moved it away. */
  readonly isDamaged: boolean;
  constructor(cause: unknown, { isDamaged = false } = {}) {
    const message =
      'The keys of the schedules are unavailable. Repeat the request, with the same payment header if it has one.';
    super('schedules_unavailable', message, { cause, retryAfterSeconds: 5 });
    this.name = 'VaultUnavailable';
    this.isDamaged = isDamaged;
  }
}
