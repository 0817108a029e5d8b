// What a witness remembers: the largest checkpoint of each log that it has cosigned.
import type { WitnessedHead } from '#src/domain/transparency/witness.ts';

export type WitnessedCheckpoint = WitnessedHead & {
  /** The checkpoint with the verified signatures of its log and the cosignatures. */
  readonly note: string;
};

/** Shared by processes. All calls throw if the storage fails. */
export interface WitnessStore {
  /** null: no checkpoint of this log was cosigned. */
  find(origin: string): Promise<WitnessedCheckpoint | null>;
  /** The same by the SHA-256 of the origin, in lower-case hex. */
  findByHash(originHash: string): Promise<WitnessedCheckpoint | null>;
  /**
   * Stores `next` if the last one is still `last` (null: none), in one transaction, and resolves when it is on the disk. False:
   * it was another one, and nothing was stored.
   */
  replace(origin: string, last: WitnessedHead | null, next: WitnessedCheckpoint): Promise<boolean>;
  close(): void;
}
