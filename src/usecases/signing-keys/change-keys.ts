// The operator's commands on signing keys: list, rotate, retire. The event log decides; the marks in the key file follow.
import type { EventOf } from '#src/domain/events.ts';
import type { KeyPurpose, SigningKeyRetired } from '#src/domain/signing-keys/events.ts';
import {
  evolveKeys,
  type HeldKey,
  isUnretired,
  type KeyRecord,
  keyOpenAt,
  lastingKeys,
} from '#src/domain/signing-keys/keys.ts';
import type { KeyStore, KeyStoreContent, StoredKey } from '#src/ports/key-store.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import {
  activation,
  announce,
  demandSameSecret,
  iso,
  type KeyRing,
  loadKeyRing,
  withTimeLimit,
} from './key-ring.ts';

export type ChangeKeysDeps = JournalDeps & { readonly store: KeyStore };

/** `unannounced`: in the file and not in the event log, so it signs nothing. */
type KeyState = 'active' | 'retiring' | 'retired' | 'compromised' | 'unannounced';

export type ListedKey = {
  readonly keyId: string;
  readonly purpose: string;
  readonly state: KeyState;
  /** RFC 3339. */
  readonly notBefore: string | null;
  readonly notAfter: string | null;
  readonly compromisedAt: string | null;
  /** The mark in the key file; null if the key is not in it. */
  readonly inFile: HeldKey['status'] | null;
};

/** Every key of the event log and of the key file (`held`), in this order. */
export async function listKeys(
  { log, clock }: Pick<JournalDeps, 'log' | 'clock'>,
  held: readonly HeldKey[],
): Promise<readonly ListedKey[]> {
  const { keys } = await loadKeyRing({ log });
  const now = Math.floor(clock.now() / 1000);
  const announced = keys.map((key) => ({
    keyId: key.keyId,
    purpose: key.purpose,
    state: stateOf(key, now),
    ...windowOf(key),
    inFile: held.find(({ keyId }) => keyId === key.keyId)?.status ?? null,
  }));
  const unknown = { state: 'unannounced', notBefore: null, notAfter: null, compromisedAt: null } as const;
  const others = held
    .filter(({ keyId }) => !keys.some((key) => key.keyId === keyId))
    .map(({ keyId, purpose, status }) => ({ keyId, purpose, ...unknown, inFile: status }));
  return [...announced, ...others];
}

function stateOf(key: KeyRecord, now: number): KeyState {
  if (key.compromisedAt !== null) return 'compromised';
  if (key.notAfter === null) return 'active';
  return keyOpenAt(key, now) ? 'retiring' : 'retired';
}

/** The times of a key in RFC 3339. */
export function windowOf({ notBefore, notAfter, compromisedAt }: KeyRecord) {
  const text = (seconds: number | null) => (seconds === null ? null : iso(seconds * 1000));
  return { notBefore: iso(notBefore * 1000), notAfter: text(notAfter), compromisedAt: text(compromisedAt) };
}

export type Rotation = {
  /** `completed`: an earlier call had announced the key, and only the file's marks were missing. */
  readonly outcome: 'rotated' | 'completed';
  readonly keyId: string;
  /** Retired keys, and until when they still sign: RFC 3339. */
  readonly retiring: readonly { readonly keyId: string; readonly effectiveAt: string }[];
};

/**
 * Replaces the keys of a purpose by a fresh one. The key file is written first, then the event log, then the file's
 * marks: after a crash in between, the same call completes it. Throws `KeyMismatch`, `LogTakesNothing`, or what the key
 * store throws.
 */
export async function rotateKeys(
  deps: ChangeKeysDeps,
  { purpose, graceMs }: { readonly purpose: KeyPurpose; readonly graceMs: number },
): Promise<Rotation> {
  const limited = withTimeLimit(deps);
  let meant: StoredKey | null = null;
  for (;;) {
    const ring = await loadKeyRing(deps);
    demandSameSecret(ring, deps.store.read());
    if (meant !== null && isAnnounced(ring, meant)) return completed(deps, ring, purpose);
    const content = prepareFile(deps, ring, purpose);
    meant = unannounced(ring, content, purpose);
    if (meant === null) return completed(deps, ring, purpose);
    const now = deps.clock.now();
    const retirements = ring.keys
      .filter((key) => key.purpose === purpose && isUnretired(key))
      .map(({ keyId }) => retirement({ keyId, reason: 'rotated', now, effectiveAt: now + graceMs }));
    const fresh = activation({ key: meant, purpose }, content.secretCheck, iso(now));
    if (!(await announce(limited, ring, [fresh, ...retirements], meant.keyId))) continue;
    const retiring = retirements.map(({ data: { keyId, effectiveAt } }) => ({ keyId, effectiveAt }));
    const retired = retiring.map(({ keyId }) => keyId);
    mark(deps.store, retired);
    return { outcome: 'rotated', keyId: meant.keyId, retiring };
  }
}

const isAnnounced = ({ keys }: KeyRing, { keyId }: StoredKey): boolean =>
  keys.some((key) => key.keyId === keyId);

/** The file's active key that is not announced yet. */
const unannounced = (ring: KeyRing, { keys }: KeyStoreContent, purpose: KeyPurpose): StoredKey | null =>
  keys.find((key) => key.purpose === purpose && key.status === 'active' && !isAnnounced(ring, key)) ?? null;

/** Keys that a rotation has retired in the log, and that the file still marks active. */
const unmarked = ({ rotated }: KeyRing, { keys }: KeyStoreContent, purpose: KeyPurpose): readonly string[] =>
  keys
    .filter((key) => key.purpose === purpose && key.status === 'active' && rotated.has(key.keyId))
    .map(({ keyId }) => keyId);

/** Adds a fresh key in front, unless there is an unannounced one, or an earlier call has only its marks left to do. */
const prepareFile = ({ store }: ChangeKeysDeps, ring: KeyRing, purpose: KeyPurpose): KeyStoreContent =>
  store.update((found) => {
    if (unannounced(ring, found, purpose) !== null) return null;
    const successors = lastingKeys(found.keys, ring.keys, purpose);
    const isBegun = unmarked(ring, found, purpose).length > 0 && successors.length > 0;
    return isBegun ? null : { fresh: [purpose], retired: [] };
  });

function completed({ store }: ChangeKeysDeps, ring: KeyRing, purpose: KeyPurpose): Rotation {
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

/** Time for every process to read of a retirement, and for a running job to end with the key it began with. */
const NOTICE_MS = 600_000;

export type Retirement =
  | { readonly outcome: 'retired' | 'unchanged'; readonly purpose: KeyPurpose; readonly record: KeyRecord }
  | { readonly outcome: 'unknown_key' }
  /** No other key could sign. */
  | { readonly outcome: 'only_key'; readonly purpose: KeyPurpose };

/**
 * Retires one key, effective in ten minutes. `compromisedAt`: Unix ms, from which nothing that it signed is trusted;
 * null: it is only no longer needed. `unchanged`: it had ended as early already. Throws `KeyMismatch`, `LogTakesNothing`,
 * or what the key store throws.
 */
export async function retireKey(
  deps: ChangeKeysDeps,
  keyId: string,
  compromisedAt: number | null,
): Promise<Retirement> {
  const limited = withTimeLimit(deps);
  for (;;) {
    const ring = await loadKeyRing(deps);
    const content = deps.store.read();
    demandSameSecret(ring, content);
    const record = ring.keys.find((key) => key.keyId === keyId);
    if (record === undefined) return { outcome: 'unknown_key' };
    const { purpose } = record;
    const others = lastingKeys(content.keys, ring.keys, purpose).filter((key) => key.keyId !== keyId);
    if (isUnretired(record) && others.length === 0) return { outcome: 'only_key', purpose };
    const now = deps.clock.now();
    const reason = compromisedAt === null ? 'retired' : 'compromised';
    const event = retirement({ keyId, reason, now, effectiveAt: now + NOTICE_MS, compromisedAt });
    const [after = record] = evolveKeys([record], event);
    if (after.notAfter === record.notAfter && after.compromisedAt === record.compromisedAt)
      return { outcome: 'unchanged', purpose, record };
    if (!(await announce(limited, ring, [event], keyId))) continue;
    try {
      mark(deps.store, [keyId]);
    } catch (cause) {
      deps.logger.warn('the key is retired, and could not be marked so in the key file', { cause });
    }
    return { outcome: 'retired', purpose, record: after };
  }
}

/** Times: Unix ms. */
function retirement(facts: {
  readonly keyId: string;
  readonly reason: SigningKeyRetired['reason'];
  readonly now: number;
  readonly effectiveAt: number;
  readonly compromisedAt?: number | null;
}): EventOf<'SigningKeyRetired'> {
  const { keyId, reason, now, effectiveAt, compromisedAt: since = null } = facts;
  const compromisedAt = since === null ? null : iso(since);
  const data = { keyId, reason, effectiveAt: iso(effectiveAt), compromisedAt, retiredAt: iso(now) };
  return { type: 'SigningKeyRetired', data: { v: 1, ...data } };
}

/** Marks keys of the file as retired if they are not. */
const mark = (store: KeyStore, keyIds: readonly string[]): KeyStoreContent =>
  store.update(({ keys }) => {
    const retired = keys.filter(({ keyId, status }) => status === 'active' && keyIds.includes(keyId));
    return retired.length === 0 ? null : { fresh: [], retired: retired.map(({ keyId }) => keyId) };
  });
