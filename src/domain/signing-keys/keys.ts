// Signing keys as the event log records them and as they are published (JWK set, did:web), and which key of the process's
// key file signs.
import { type Static, Type } from '@sinclair/typebox';
import type { KeyEvent } from '#src/domain/events.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { isObject } from '#src/lib/is-object.ts';
import { KeyPurpose } from '../events/signing-keys.ts';

export type KeyRecord = {
  readonly keyId: string;
  readonly purpose: KeyPurpose;
  /** Public key: 32 bytes, base64url. */
  readonly x: string;
  /** Unix seconds, inclusive. */
  readonly notBefore: number;
  /** Unix seconds, inclusive; null while active. */
  readonly notAfter: number | null;
  /** Unix seconds from which nothing is trusted; null unless compromised. */
  readonly compromisedAt: number | null;
};

/** What the verifiers take as an argument, as the domain computes no signatures. */
export type Primitives = {
  /** RFC 8032 verification: 32-byte public key, message, 64-byte signature. */
  readonly ed25519Verify: (
    publicKey: Uint8Array,
    message: Uint8Array,
    signature: Uint8Array,
  ) => boolean | Promise<boolean>;
  /**
   * FIPS 204 verification with an empty context: 1312-byte public key, message, 2420-byte signature. null or absent: this
   * runtime has no ML-DSA-44, so that such a cosignature is neither valid nor invalid.
   */
  readonly mlDsa44Verify?: (
    publicKey: Uint8Array,
    message: Uint8Array,
    signature: Uint8Array,
  ) => Promise<boolean | null>;
};

/** The input of an Ed25519 key's RFC 7638 thumbprint: the members that RFC 8037 requires. Its SHA-256 is the key's id. */
export const thumbprintText = (x: string): string => JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x });

const seconds = (instant: string) => Math.floor(Date.parse(instant) / 1000);

/** A second retirement may end a key earlier, never later. */
const earlier = (a: number | null, b: number | null) =>
  a === null || b === null ? (a ?? b) : Math.min(a, b);

export function evolveKeys(keys: readonly KeyRecord[], event: KeyEvent): readonly KeyRecord[] {
  switch (event.type) {
    case 'SigningKeyActivated': {
      const { keyId, purpose, x, activatedAt } = event.data;
      if (keys.some((key) => key.keyId === keyId)) return keys;
      const fresh = { keyId, purpose, x, notBefore: seconds(activatedAt) };
      return [...keys, { ...fresh, notAfter: null, compromisedAt: null }];
    }
    case 'SigningKeyRetired': {
      const { keyId, effectiveAt, compromisedAt } = event.data;
      const retired = (key: KeyRecord): KeyRecord => ({
        ...key,
        notAfter: earlier(key.notAfter, seconds(effectiveAt)),
        compromisedAt: earlier(key.compromisedAt, compromisedAt === null ? null : seconds(compromisedAt)),
      });
      return keys.map((key) => (key.keyId === keyId ? retired(key) : key));
    }
    default:
      return event satisfies never;
  }
}

/** Each key once, with the earliest end that any of its records states. */
export function strictestOf(records: readonly KeyRecord[]): readonly KeyRecord[] {
  const keys = new Map<string, KeyRecord>();
  for (const record of records) {
    const other = keys.get(record.keyId) ?? record;
    const notAfter = earlier(other.notAfter, record.notAfter);
    const compromisedAt = earlier(other.compromisedAt, record.compromisedAt);
    keys.set(record.keyId, { ...other, notAfter, compromisedAt });
  }
  return [...keys.values()];
}

/** The key within the window that the trusted keys give it, too. */
export function narrowedKey(key: KeyRecord, trusted: readonly KeyRecord[]): KeyRecord {
  const other = trusted.find(({ keyId }) => keyId === key.keyId);
  if (other === undefined) return key;
  return {
    ...key,
    notBefore: Math.max(key.notBefore, other.notBefore),
    notAfter: earlier(key.notAfter, other.notAfter),
    // A checkpoint has no time of its own that its signature covers: only the record shows which ones precede a compromise.
    compromisedAt:
      key.purpose === 'checkpoint' ? key.compromisedAt : earlier(key.compromisedAt, other.compromisedAt),
  };
}

/** Whether a receipt issued at `iat` (Unix seconds) may be signed by this key. */
export const keyValidAt = (key: KeyRecord, iat: number): boolean =>
  key.purpose === 'receipt' && keyOpenAt(key, iat);

/** Whether a key of any purpose may sign `at` this time (Unix seconds). */
export function keyOpenAt(
  { notBefore, notAfter, compromisedAt }: Omit<KeyRecord, 'keyId' | 'purpose' | 'x'>,
  at: number,
): boolean {
  if (at < notBefore || (notAfter !== null && at > notAfter)) return false;
  return compromisedAt === null || at < compromisedAt;
}

export const isUnretired = ({ notAfter, compromisedAt }: KeyRecord): boolean =>
  notAfter === null && compromisedAt === null;

export const Jwk = Type.Object({
  kty: Type.Literal('OKP'),
  crv: Type.Literal('Ed25519'),
  kid: Type.String(),
  x: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
  use: Type.Optional(Type.Literal('sig')),
  alg: Type.Optional(Type.Literal('EdDSA')),
  purpose: Type.Optional(KeyPurpose),
  nbf: Type.Optional(Type.Integer()),
  exp: Type.Optional(Type.Integer()),
  revokedAt: Type.Optional(Type.Integer()),
});
export type Jwk = Static<typeof Jwk>;
export type JwkSet = { readonly keys: readonly Jwk[] };

export function toJwk(key: KeyRecord): Jwk {
  return {
    kty: 'OKP',
    crv: 'Ed25519',
    kid: key.keyId,
    x: key.x,
    use: 'sig',
    alg: 'EdDSA',
    purpose: key.purpose,
    nbf: key.notBefore,
    ...(key.notAfter === null ? {} : { exp: key.notAfter }),
    ...(key.compromisedAt === null ? {} : { revokedAt: key.compromisedAt }),
  };
}

const isJwk = shapeCheck(Jwk);

/** The Ed25519 keys of a JWK set, other keys ignored (RFC 7517 §5); null if it is no JWK set. */
export function fromJwkSet(value: unknown): readonly KeyRecord[] | null {
  if (!isObject(value) || !Array.isArray(value.keys)) return null;
  return value.keys.filter(isJwk).map((jwk) => ({
    keyId: jwk.kid,
    purpose: jwk.purpose ?? 'receipt',
    x: jwk.x,
    notBefore: jwk.nbf ?? 0,
    notAfter: jwk.exp ?? null,
    compromisedAt: jwk.revokedAt ?? null,
  }));
}

/** `host`: a host name without port; `port`: as in the URL, empty for the scheme's default. */
export function didOf(host: string, port: string): string {
  // Within the identifier a colon separates path segments: the colons of a port and of an IPv6 address are encoded.
  const name = host.replaceAll('[', '%5B').replaceAll(']', '%5D').replaceAll(':', '%3A');
  return port === '' ? `did:web:${name}` : `did:web:${name}%3A${port}`;
}

/** The DID URL of one key: the `kid` of a JWS whose reader resolves DIDs. */
export const didKeyId = (did: string, keyId: string): string => `${did}#${keyId}`;

/** A key of the key file. `purpose` may be unknown to this version. */
export type HeldKey = {
  readonly keyId: string;
  readonly purpose: string;
  readonly status: 'active' | 'retired';
  /** Public key: 32 bytes, base64url. */
  readonly x: string;
};

/**
 * For this time an older valid key is preferred to a fresh one: verifiers cache the key set for a minute, some JOSE libraries
 * for longer, and do not download it again for a key that they lack. Checkpoint keys are read by our own processes, every 5 s.
 */
const SETTLING_SECONDS: Readonly<Record<KeyPurpose, number>> = { receipt: 180, checkpoint: 6 };

/**
 * The key that signs for `purpose` what is issued `atMs` (Unix ms, rounded down to the second as `iat` is); null if
 * none is valid then. `announced`: the keys of the log, as this process has read them.
 *
 * Preferred are settled keys to fresh ones, of fresh ones the older, then `active` in the file to `retired`, then keys without
 * a retirement to those with one, then the order of the file.
 */
export function keyThatSigns<K extends HeldKey>(
  held: readonly K[],
  announced: readonly KeyRecord[],
  purpose: KeyPurpose,
  atMs: number,
): K | null {
  const at = Math.floor(atMs / 1000);
  let best: { readonly key: K; readonly age: number; readonly rank: number } | null = null;
  for (const key of held) {
    const record = key.purpose === purpose ? recordOf(key, announced) : null;
    if (record === null || !keyOpenAt(record, at)) continue;
    const age = Math.min(at - record.notBefore, SETTLING_SECONDS[purpose]);
    const rank = (key.status === 'active' ? 2 : 0) + (isUnretired(record) ? 1 : 0);
    if (best === null || age > best.age || (age === best.age && rank > best.rank)) best = { key, age, rank };
  }
  return best?.key ?? null;
}

/** After its retirement, for witnesses that do not know the key that has replaced it. */
const REPLACED_SECONDS = 30 * 86_400;
/** C2SP signed-note: every reader of a note accepts 16 signatures, and one is by the current key. */
const MOST_REPLACED = 15;

/**
 * The checkpoint keys that sign beside `current` (an id): for 30 days after their retirement, or until every witness has
 * accepted the current one (`isAccepted`), whichever is later: a witness may have missed several rotations. Never one that was
 * compromised, and the newest 15 at most. Newest first.
 */
export function replacedKeysThatSign<K extends HeldKey>(
  held: readonly K[],
  announced: readonly KeyRecord[],
  current: string,
  atMs: number,
  isAccepted: boolean,
): readonly K[] {
  const replaced = held.flatMap((key) => {
    const record = key.purpose === 'checkpoint' && key.keyId !== current ? recordOf(key, announced) : null;
    const { notAfter = null, compromisedAt = null } = record ?? {};
    return notAfter === null || compromisedAt !== null ? [] : [{ key, notAfter }];
  });
  return replaced
    .sort((a, b) => b.notAfter - a.notAfter)
    .filter(({ notAfter }) => atMs / 1000 <= notAfter + REPLACED_SECONDS || !isAccepted)
    .slice(0, MOST_REPLACED)
    .map(({ key }) => key);
}

/**
 * From when (Unix seconds) one of the held keys is valid for `purpose`, if none is valid `atMs` (Unix ms) but one will be;
 * null: none will be.
 */
export function validFrom(
  held: readonly HeldKey[],
  announced: readonly KeyRecord[],
  purpose: KeyPurpose,
  atMs: number,
): number | null {
  const later = held.flatMap((key) => {
    const record = key.purpose === purpose ? recordOf(key, announced) : null;
    const isLater = record !== null && record.notBefore * 1000 > atMs && keyOpenAt(record, record.notBefore);
    return isLater ? [record.notBefore] : [];
  });
  return later.length === 0 ? null : Math.min(...later);
}

/** The keys for `purpose` that sign `at` this time (Unix seconds), will sign, or have signed within the `seconds` before. */
export const recentKeys = <K extends HeldKey>(
  held: readonly K[],
  announced: readonly KeyRecord[],
  purpose: KeyPurpose,
  { at, seconds }: { readonly at: number; readonly seconds: number },
): readonly { readonly key: K; readonly record: KeyRecord }[] =>
  held.flatMap((key) => {
    const record = key.purpose === purpose ? recordOf(key, announced) : null;
    const isPast =
      record?.compromisedAt !== null || (record.notAfter !== null && record.notAfter < at - seconds);
    return record === null || isPast ? [] : [{ key, record }];
  });

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
    const record = key.purpose === purpose && key.status === 'active' ? recordOf(key, announced) : null;
    return record !== null && isUnretired(record);
  });
