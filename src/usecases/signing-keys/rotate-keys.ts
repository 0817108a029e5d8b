// A fresh key in the place of those that signed so far. The file comes first, then the log, then the file's marks: a
// process that ends in between leaves what the same call, made again, brings to its end.
import { type EventOf, STREAM } from '#src/domain/events.ts';
import type { KeyPurpose } from '#src/domain/signing-keys/events.ts';
import { isUnretired } from '#src/domain/signing-keys/keys.ts';
import { lastingKeys } from '#src/domain/signing-keys/local-keys.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { KeyStore, KeyStoreContent, StoredKey } from '#src/ports/key-store.ts';
import { appendUntilKnown, envelope, type JournalDeps } from '#src/usecases/event-streams.ts';
import {
  activation,
  demandSameSecret,
  iso,
  type KeyRing,
  loadKeyRing,
  windowOf,
  withPatience,
} from './announce-keys.ts';

export type KeyOfficeDeps = JournalDeps & { readonly store: KeyStore };

export type Rotation = {
  /** `completed`: an earlier call had announced the key; only the file's marks were missing. */
  readonly outcome: 'rotated' | 'completed';
  readonly keyId: string;
  /** Keys that gave way, and until when they still sign: RFC 3339; empty where there was none. */
  readonly retiring: readonly { readonly keyId: string; readonly effectiveAt: string }[];
};

/** Throws `KeyMismatch`, `LogTakesNothing`, or what the key store throws. */
export async function rotateKeys(
  deps: KeyOfficeDeps,
  { purpose, graceMs }: { readonly purpose: KeyPurpose; readonly graceMs: number },
): Promise<Rotation> {
  const patient = withPatience(deps);
  let meant: StoredKey | null = null;
  for (;;) {
    const ring = await loadKeyRing(deps);
    demandSameSecret(ring, deps.store.read());
    if (meant !== null && isAnnounced(ring, meant)) return completed(deps, ring, purpose);
    const content = prepareFile(deps, ring, purpose);
    meant = unannounced(ring, content, purpose);
    if (meant === null) return completed(deps, ring, purpose);
    const now = deps.clock.now();
    const retirements = retirementsOf(ring, purpose, now, graceMs);
    const fresh = activation({ key: meant, purpose }, content.secretCheck, iso(now));
    const events = envelope(deps, [fresh, ...retirements], meant.keyId);
    try {
      await appendUntilKnown(patient, STREAM.keys, ring.revision, events);
    } catch (error) {
      if (error instanceof WrongExpectedVersion) continue;
      throw error;
    }
    const retiring = retirements.map(({ data: { keyId, effectiveAt } }) => ({ keyId, effectiveAt }));
    mark(
      deps.store,
      retiring.map(({ keyId }) => keyId),
    );
    return { outcome: 'rotated', keyId: meant.keyId, retiring };
  }
}

const isAnnounced = ({ keys }: KeyRing, { keyId }: StoredKey): boolean =>
  keys.some((key) => key.keyId === keyId);

/** The key that stands ready in the file; null where there is none. */
const unannounced = (ring: KeyRing, { keys }: KeyStoreContent, purpose: KeyPurpose): StoredKey | null =>
  keys.find((key) => key.purpose === purpose && key.status === 'active' && !isAnnounced(ring, key)) ?? null;

/** Keys that the log has seen give way, and the file still calls active. */
const unmarked = ({ rotated }: KeyRing, { keys }: KeyStoreContent, purpose: KeyPurpose): readonly string[] =>
  keys
    .filter((key) => key.purpose === purpose && key.status === 'active' && rotated.has(key.keyId))
    .map(({ keyId }) => keyId);

/** Puts a fresh key in front, unless one stands ready or an earlier call has left its marks to be made. */
const prepareFile = ({ store }: KeyOfficeDeps, ring: KeyRing, purpose: KeyPurpose): KeyStoreContent =>
  store.update((found) => {
    if (unannounced(ring, found, purpose) !== null) return null;
    const successors = lastingKeys(found.keys, ring.keys, purpose);
    const isBegun = unmarked(ring, found, purpose).length > 0 && successors.length > 0;
    return isBegun ? null : { fresh: [purpose], retired: [] };
  });

function completed({ store }: KeyOfficeDeps, ring: KeyRing, purpose: KeyPurpose): Rotation {
  const left = unmarked(ring, store.read(), purpose);
  const { keys } = mark(store, left);
  const [successor] = lastingKeys(keys, ring.keys, purpose);
  if (successor === undefined)
    throw new Error('a key that was announced is gone from the key file, or retired');
  const retiring = ring.keys.flatMap((key) => {
    const { notAfter } = windowOf(key);
    return left.includes(key.keyId) && notAfter !== null ? [{ keyId: key.keyId, effectiveAt: notAfter }] : [];
  });
  return { outcome: 'completed', keyId: successor.keyId, retiring };
}

function retirementsOf(
  ring: KeyRing,
  purpose: KeyPurpose,
  now: number,
  graceMs: number,
): readonly { type: 'SigningKeyRetired'; data: EventOf<'SigningKeyRetired'>['data'] }[] {
  return ring.keys
    .filter((key) => key.purpose === purpose && isUnretired(key))
    .map(({ keyId }) => ({
      type: 'SigningKeyRetired' as const,
      data: {
        v: 1 as const,
        keyId,
        reason: 'rotated' as const,
        effectiveAt: iso(now + graceMs),
        compromisedAt: null,
        retiredAt: iso(now),
      },
    }));
}

/** Marks keys of the file as retired, where they are not. */
export const mark = (store: KeyStore, keyIds: readonly string[]): KeyStoreContent =>
  store.update(({ keys }) => {
    const retired = keys.filter(({ keyId, status }) => status === 'active' && keyIds.includes(keyId));
    return retired.length === 0 ? null : { fresh: [], retired: retired.map(({ keyId }) => keyId) };
  });
