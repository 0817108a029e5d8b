// Which key of the process's key file signs: one that the event log has announced.
import type { KeyPurpose } from './events.ts';
import { isUnretired, type KeyRecord, keyOpenAt } from './keys.ts';

/** A key of the key file. `purpose` may be unknown to this version. */
export type HeldKey = {
  readonly keyId: string;
  readonly purpose: string;
  readonly status: 'active' | 'retired';
  /** Public key: 32 bytes, base64url. */
  readonly x: string;
};

/**
 * For this time an older valid key is preferred to a fresh one, so that every process has read the fresh key's
 * announcement. A little more than the 5 s between two reads.
 */
const SETTLING_SECONDS = 6;

/**
 * The key that signs for `purpose` what is issued `atMs` (Unix ms, rounded down to the second as `iat` is); null if
 * none is valid then. `announced`: the keys of the log, as this process has read them.
 *
 * Preferred are settled keys to fresh ones, then `active` in the file to `retired`, then keys without a retirement to those
 * with one, then the order of the file.
 */
export function keyThatSigns<K extends HeldKey>(
  held: readonly K[],
  announced: readonly KeyRecord[],
  purpose: KeyPurpose,
  atMs: number,
): K | null {
  const at = Math.floor(atMs / 1000);
  let best: { readonly key: K; readonly rank: number } | null = null;
  for (const key of held) {
    const record = key.purpose === purpose ? recordOf(key, announced) : null;
    if (record === null || !keyOpenAt(record, at)) continue;
    const settled = at >= record.notBefore + SETTLING_SECONDS;
    const rank = (settled ? 4 : 0) + (key.status === 'active' ? 2 : 0) + (isUnretired(record) ? 1 : 0);
    if (best === null || rank > best.rank) best = { key, rank };
  }
  return best?.key ?? null;
}

/** The key's record in the event log; null if the log has no key with this id, public key and purpose. */
export const recordOf = (key: HeldKey, announced: readonly KeyRecord[]): KeyRecord | null =>
  announced.find(({ keyId, x, purpose }) => keyId === key.keyId && x === key.x && purpose === key.purpose) ??
  null;

/** The keys that are marked active, announced and not retired: they can sign from now on without an end. */
export const lastingKeys = <K extends HeldKey>(
  held: readonly K[],
  announced: readonly KeyRecord[],
  purpose: string,
): readonly K[] =>
  held.filter((key) => {
    if (key.purpose !== purpose || key.status !== 'active') return false;
    const record = recordOf(key, announced);
    return record !== null && isUnretired(record);
  });
