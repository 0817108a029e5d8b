// Which of the keys that a process holds signs: what the log has announced, in the order of the process's own key file.
import type { KeyPurpose } from './events.ts';
import { isUnretired, type KeyRecord, keyOpenAt } from './keys.ts';

/** A key whose private half is at hand. `purpose` may be one that this version does not know. */
export type HeldKey = {
  readonly keyId: string;
  readonly purpose: string;
  readonly status: 'active' | 'retired';
  /** Public key: 32 bytes, base64url. */
  readonly x: string;
};

/**
 * So long a fresh key leaves the signing to an older one that is still valid: by then every process has read of it.
 * A little more than the 5 s within which they look.
 */
const SETTLING_SECONDS = 6;

/**
 * The key that signs for `purpose` what is issued `atMs` (Unix ms, rounded down to the second as `iat` is); null where
 * none is valid then. `announced`: the keys of the log, as this process has read them.
 *
 * One that has settled comes before a fresh one, then `active` in the file before `retired`, then one that nobody has
 * retired before one that runs out, then the order of the file.
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

/** What the log says of a key that is held; null where it knows none of that name with that public half and purpose. */
export const recordOf = (key: HeldKey, announced: readonly KeyRecord[]): KeyRecord | null =>
  announced.find(({ keyId, x, purpose }) => keyId === key.keyId && x === key.x && purpose === key.purpose) ??
  null;

/** Held, marked active, announced, and retired by nobody: it can sign from now on, for as long as it is left to. */
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
