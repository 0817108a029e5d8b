// What stands in a key file: a set of private keys and the HMAC secret, as JSON. The disk is left to others.
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { fromBase64url, toBase64url } from '#src/domain/encoding.ts';
import type { HeldKey } from '#src/domain/signing-keys/local-keys.ts';
import type { KeyFileChange } from '../../ports/key-store.ts';
import { publicX, thumbprint } from './ed25519.ts';
import { KeyFileError } from './key-file-error.ts';

const Bytes32 = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });

/** RFC 8037 private key; further members (`use`, `alg`, what a later version adds) are kept as they are. */
const PrivateJwk = Type.Object({
  kty: Type.Literal('OKP'),
  crv: Type.Literal('Ed25519'),
  kid: Bytes32,
  x: Bytes32,
  d: Bytes32,
  purpose: Type.String({ minLength: 1 }),
  status: Type.Union([Type.Literal('active'), Type.Literal('retired')]),
});
type PrivateJwk = Static<typeof PrivateJwk>;

const KeyFileText = Type.Object({
  keys: Type.Array(PrivateJwk, { minItems: 1 }),
  /** 32 bytes, base64url. */
  hmacSecret: Bytes32,
});
type KeyFileText = Static<typeof KeyFileText>;

/** `purpose`: `receipt`, `checkpoint`, or what another version of this service made it for. */
export type FileKey = HeldKey & { readonly privateKey: KeyObject };

export type KeyFile = { readonly keys: readonly FileKey[]; readonly hmacSecret: Uint8Array };

/** Throws `KeyFileError`, `key_file_malformed`; `path` is for its message. */
export function parseKeyFile(path: string, text: string): KeyFile {
  const { keys: jwks, hmacSecret: secret } = read(path, text);
  const malformed = (problem: string) => new KeyFileError('key_file_malformed', path, problem);
  const hmacSecret = fromBase64url(secret);
  if (hmacSecret === null) throw malformed('is no key file: look at "/hmacSecret"');
  const keys = jwks.map((jwk, index) => {
    const key = fileKey(jwk);
    if (key === null)
      throw malformed(`has a key whose parts do not belong together: look at "/keys/${index}"`);
    return key;
  });
  if (new Set(keys.map((key) => key.keyId)).size < keys.length) throw malformed('has a key twice');
  return { keys, hmacSecret };
}

function read(path: string, text: string): KeyFileText {
  const malformed = (problem: string) => new KeyFileError('key_file_malformed', path, problem);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed('is not JSON');
  }
  if (Value.Check(KeyFileText, value)) return value;
  const where = Value.Errors(KeyFileText, value).First()?.path ?? '';
  throw malformed(`is no key file: look at "${where || '/'}"`);
}

/** The text with fresh keys in front and others marked, everything else as it was. */
export function changedText(path: string, text: string, { fresh, retired }: KeyFileChange): string {
  const value = read(path, text);
  const kept = value.keys.map((jwk) =>
    retired.includes(jwk.kid) ? { ...jwk, status: 'retired' as const } : jwk,
  );
  return textOf({ ...value, keys: [...fresh.map(freshKey), ...kept] });
}

/** One active key for receipts, one for checkpoints, and a secret. */
export const freshText = (): string =>
  textOf({
    keys: [freshKey('receipt'), freshKey('checkpoint')],
    hmacSecret: toBase64url(randomBytes(32)),
  });

const textOf = (value: KeyFileText): string => `${JSON.stringify(value, null, 2)}\n`;

function freshKey(purpose: string): PrivateJwk & { use: 'sig'; alg: 'EdDSA' } {
  for (;;) {
    const key = anyKey(purpose);
    // On a command line it would look like an option.
    if (!key.kid.startsWith('-')) return key;
  }
}

function anyKey(purpose: string): PrivateJwk & { use: 'sig'; alg: 'EdDSA' } {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { x, d } = privateKey.export({ format: 'jwk' });
  if (x === undefined || d === undefined) throw new Error('the runtime exports no Ed25519 JWK');
  const kid = thumbprint(x);
  return { kty: 'OKP', crv: 'Ed25519', kid, x, d, use: 'sig', alg: 'EdDSA', purpose, status: 'active' };
}

/** null where `d` is not the private half of `x`, or `kid` not the thumbprint: it would sign what nobody verifies. */
function fileKey({ kid, x, d, purpose, status }: PrivateJwk): FileKey | null {
  const privateKey = importPrivate(x, d);
  if (privateKey === null || publicX(privateKey) !== x || thumbprint(x) !== kid) return null;
  return { keyId: kid, purpose, status, x, privateKey };
}

function importPrivate(x: string, d: string): KeyObject | null {
  try {
    return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' });
  } catch {
    return null;
  }
}
