// The vault: sealed texts, kept outside the event log so that they can be deleted. The event log has their names.
import { Fault } from '#src/domain/refusal.ts';

export type Sealing = {
  /** What it is stored under, without a dot. Repeated: the text that is there stays. */
  readonly name: string;
  readonly text: string;
  /** Unix ms after which it may be deleted. */
  readonly untilMs: number;
  /** Whose texts are counted, how many there may be, and what this one is worth; null: it is not counted. */
  readonly seat: { readonly holder: string; readonly max: number; readonly amount: bigint } | null;
};

/** Each call throws `VaultUnavailable` while the texts cannot be read or written. */
export interface Vault {
  /**
   * Seals a text under a random key; both are durable before this returns. Returns what `take` reads it by; null: its
   * holder has `max` texts. However many processes seal at once, no holder has more.
   */
  put(sealing: Sealing): Promise<string | null>;
  /** The worth of each text that the holder has; null: it was sealed by a release that did not record it. */
  held(holder: string): Promise<readonly (bigint | null)[]>;
  /** null if it is gone, or was changed. It stays. */
  take(sealed: string): Promise<string | null>;
  /** Deletes texts with their keys. Those that are gone already do not matter. */
  remove(names: readonly string[]): Promise<void>;
  /** Of all texts. */
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
