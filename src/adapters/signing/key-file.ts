// The key file: private signing keys and the one HMAC secret, on disk for their owner alone.
// It decides what a key file is and how one comes into being; which key signs and since when, the log tells.
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { fromBase64url, toBase64url } from '../../domain/bytes.ts';
import { publicX, thumbprint } from './ed25519.ts';

const Bytes32 = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });

/** RFC 8037 private key; further members (`use`, `alg`, what a later version adds) are kept out of the way. */
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

export type SigningKey = {
  /** RFC 7638 thumbprint. */
  readonly keyId: string;
  /** `receipt`, `checkpoint`, or what another version of this service made it for. */
  readonly purpose: string;
  readonly status: 'active' | 'retired';
  /** Public key: 32 bytes, base64url. */
  readonly x: string;
  readonly privateKey: KeyObject;
};

export type KeyFile = { readonly keys: readonly SigningKey[]; readonly hmacSecret: Uint8Array };

/** The key file cannot be used as it is. The message names the file and never shows what is in it. */
export class KeyFileError extends Error {
  readonly code: KeyFileFault;
  constructor(code: KeyFileFault, path: string, problem: string, cause?: unknown) {
    super(`key file ${path} ${problem}`, { cause });
    this.name = 'KeyFileError';
    this.code = code;
  }
}

export type KeyFileFault =
  | 'key_file_missing'
  | 'key_file_exists'
  | 'key_file_readable_by_others'
  | 'key_file_malformed'
  | 'key_file_unusable';

/**
 * Reads the file, or makes it where it is missing and `create` is true (the embedded default only). Processes that
 * start at once all end with the one file that won. Throws `KeyFileError`.
 */
export function openKeyFile(options: { readonly path: string; readonly create: boolean }): KeyFile {
  const { path, create } = options;
  try {
    return readKeyFile(path);
  } catch (error) {
    if (!create || !isKeyFileError(error, 'key_file_missing')) throw error;
  }
  try {
    createKeyFile(path);
  } catch (error) {
    if (!isKeyFileError(error, 'key_file_exists')) throw error;
  }
  return readKeyFile(path);
}

/** Throws `KeyFileError`: also where group or others may read the file. */
export function readKeyFile(path: string): KeyFile {
  return parse(path, readOwnersFile(path));
}

/**
 * Makes a file with one active receipt key and a fresh secret, mode 0600, whole or not at all: it is written beside,
 * flushed, and linked to its name, which fails where the name is taken. Throws `KeyFileError`, `key_file_exists`.
 */
export function createKeyFile(path: string): void {
  const text = `${JSON.stringify(freshKeys(), null, 2)}\n`;
  const beside = `${path}.${randomUUID()}.new`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(beside, text, { flag: 'wx', mode: 0o600, flush: true });
    linkTo(beside, path);
    flushDirectory(dirname(path));
  } catch (error) {
    if (error instanceof KeyFileError) throw error;
    throw new KeyFileError('key_file_unusable', path, `cannot be made (${systemCode(error)})`, error);
  } finally {
    removeIfThere(beside);
  }
}

function linkTo(beside: string, path: string): void {
  try {
    linkSync(beside, path);
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw new KeyFileError('key_file_exists', path, 'is there already');
    throw error;
  }
}

function freshKeys(): Static<typeof KeyFileText> {
  return { keys: [freshKey('receipt')], hmacSecret: toBase64url(randomBytes(32)) };
}

function freshKey(purpose: string): PrivateJwk & { use: 'sig'; alg: 'EdDSA' } {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { x, d } = privateKey.export({ format: 'jwk' });
  if (x === undefined || d === undefined) throw new Error('the runtime exports no Ed25519 JWK');
  const kid = thumbprint(x);
  return { kty: 'OKP', crv: 'Ed25519', kid, x, d, use: 'sig', alg: 'EdDSA', purpose, status: 'active' };
}

/** The mode is read from the file that was opened: nobody can swap it in between. */
function readOwnersFile(path: string): string {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') {
      throw new KeyFileError(
        'key_file_missing',
        path,
        'is not there: correct SIGNING_KEYS_FILE, or make one with `relay keys init`',
      );
    }
    throw new KeyFileError('key_file_unusable', path, `cannot be opened (${systemCode(error)})`, error);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new KeyFileError('key_file_unusable', path, 'is not a file');
    if ((stat.mode & 0o077) !== 0) {
      throw new KeyFileError('key_file_readable_by_others', path, 'is open to others: chmod 600 it');
    }
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

function parse(path: string, text: string): KeyFile {
  const malformed = (problem: string) => new KeyFileError('key_file_malformed', path, problem);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed('is not JSON');
  }
  if (!Value.Check(KeyFileText, value)) {
    const where = Value.Errors(KeyFileText, value).First()?.path ?? '';
    throw malformed(`is no key file: look at "${where || '/'}"`);
  }
  const hmacSecret = fromBase64url(value.hmacSecret);
  if (hmacSecret === null) throw malformed('is no key file: look at "/hmacSecret"');
  const keys = value.keys.map((jwk, index) => {
    const key = signingKey(jwk);
    if (key === null)
      throw malformed(`has a key whose parts do not belong together: look at "/keys/${index}"`);
    return key;
  });
  if (new Set(keys.map((key) => key.keyId)).size < keys.length) throw malformed('has a key twice');
  return { keys, hmacSecret };
}

/** null where `d` is not the private half of `x`, or `kid` not the thumbprint: it would sign what nobody verifies. */
function signingKey({ kid, x, d, purpose, status }: PrivateJwk): SigningKey | null {
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

function flushDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** What keeps it from being removed kept it from being made, and that is the error to tell. */
function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch {}
}

const isKeyFileError = (error: unknown, code: KeyFileFault): boolean =>
  error instanceof KeyFileError && error.code === code;

const systemCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
