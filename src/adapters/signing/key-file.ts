// The key file: private signing keys and the HMAC secret, as JSON, readable by its owner alone. The event log decides
// which of its keys signs, and since when.

import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { lstatSync, readlinkSync, renameSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { fromBase64url, toBase64url } from '#src/domain/encoding.ts';
import { oneOf } from '#src/domain/event-fields.ts';
import { KnownLog } from '#src/domain/signing-keys/known-log.ts';
import { acquireFileLock } from '#src/lib/files/file-lock.ts';
import type { KeyFileChange, KeyStore, KeyStoreContent, StoredKey } from '#src/ports/key-store.ts';
import type { LogMemory } from '#src/ports/log-memory.ts';
import { derivedKey, ed25519SigningKey, publicX, thumbprint } from './ed25519.ts';
import { secretCheck } from './hash.ts';
import {
  asKeyFileError,
  createOwnersFile,
  isKeyFileError,
  KeyFileError,
  type Owner,
  readOwnersFile,
  setOwner,
  writeWhole,
} from './owners-file.ts';

type KeyFile = KeyStoreContent & {
  readonly hmacSecret: Uint8Array;
  /** The event log that its keys were announced in; null: none yet. */
  readonly eventLog: KnownLog | null;
};

/**
 * Reads the file; creates it if it is missing and `create` is true (the embedded default only). Processes that start at
 * the same time read the same file. Throws `KeyFileError`.
 */
export function openKeyFile({ path, create }: { readonly path: string; readonly create: boolean }): KeyFile {
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

/** Throws `KeyFileError`, also if group or others may read the file. */
export const readKeyFile = (path: string): KeyFile => parse(path, readOwnersFile(path, IF_MISSING).text).file;

/**
 * The text of the key file `path` with the keys that only `other` has, which come after its own. Throws `KeyFileError`.
 */
export function keyFileWith(path: string, other: string): string {
  const { json } = parse(path, readOwnersFile(path, IF_MISSING).text);
  const { keys } = parse(other, readOwnersFile(other, IF_MISSING).text).json;
  const more = keys.filter(({ kid }) => !json.keys.some((key) => key.kid === kid));
  return textOf({ ...json, keys: [...json.keys, ...more] });
}

/**
 * Creates a file with one active receipt key, one active checkpoint key and a secret, mode 0600, atomically. Throws
 * `KeyFileError`, `key_file_exists`.
 */
export function createKeyFile(path: string): void {
  const keys = [freshKey('receipt'), freshKey('checkpoint')];
  createOwnersFile(path, textOf({ keys, hmacSecret: toBase64url(randomBytes(32)) }));
}

/**
 * Changes the file atomically and returns its new content. Processes change it one after another, under a lock file beside
 * it, so that no change is lost. `change` returns null to change nothing. Mode, owner and symbolic links are preserved.
 * Blocks this thread for up to 5 s while another process has the lock. Throws `KeyFileError`.
 */
export function updateKeyFile(
  path: string,
  change: (file: KeyFile) => (KeyFileChange & { readonly eventLog?: KnownLog }) | null,
): KeyFile {
  return asKeyFileError(path, 'changed', () => {
    const { owner } = readOwnersFile(path, IF_MISSING);
    const file = linkTarget(path);
    return withKeyFileLock(file, owner, () => {
      const { text } = readOwnersFile(file, IF_MISSING);
      const current = parse(path, text);
      const wanted = change(current.file);
      if (wanted === null) return current.file;
      const changed = changedText(current.json, wanted);
      const parsed = parse(path, changed);
      writeWhole(file, changed, owner, (temporary) => renameSync(temporary, file));
      return parsed.file;
    });
  });
}

export function keyFileStore(path: string): KeyStore {
  /** A service reads the file every few seconds, and makes its keys again only if the text has changed. */
  let last: { readonly text: string; readonly file: KeyFile } | null = null;
  return {
    read() {
      const { text } = readOwnersFile(path, IF_MISSING);
      if (last?.text !== text) last = { text, file: parse(path, text).file };
      return last.file;
    },
    update: (change) => updateKeyFile(path, change),
  };
}

/** The key file as the memory of the event log that its keys were announced in. */
export const keyFileMemory = (path: string): LogMemory => ({
  place: `key file ${path}`,
  read() {
    try {
      return readKeyFile(path).eventLog;
    } catch (error) {
      if (isKeyFileError(error, 'key_file_missing')) return null;
      throw error;
    }
  },
  write: (eventLog) => void updateKeyFile(path, () => ({ fresh: [], retired: [], eventLog })),
});

const IF_MISSING = 'correct SIGNING_KEYS_FILE, or make one with `relay keys init`';

const Bytes32 = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });

/** RFC 8037 private key; other members (`use`, `alg`, those of later versions) are preserved. */
const PrivateJwk = Type.Object({
  kty: Type.Literal('OKP'),
  crv: Type.Literal('Ed25519'),
  kid: Bytes32,
  x: Bytes32,
  d: Bytes32,
  purpose: Type.String({ minLength: 1 }),
  status: oneOf('active', 'retired'),
});
type PrivateJwk = Static<typeof PrivateJwk>;

const KeyFileText = Type.Object({
  keys: Type.Array(PrivateJwk, { minItems: 1 }),
  /** 32 bytes, base64url. */
  hmacSecret: Bytes32,
  eventLog: Type.Optional(KnownLog),
});
type KeyFileText = Static<typeof KeyFileText>;

/** `json`: with all members of the file. Throws `KeyFileError`, `key_file_malformed`; `path` is for its message. */
function parse(path: string, text: string): { readonly file: KeyFile; readonly json: KeyFileText } {
  const malformed = (problem: string) => new KeyFileError('key_file_malformed', path, problem);
  const json = parsedJson(text);
  if (json === undefined) throw malformed('is not JSON');
  if (!Value.Check(KeyFileText, json)) {
    const where = Value.Errors(KeyFileText, json).First()?.path ?? '';
    throw malformed(`is no key file: look at "${where || '/'}"`);
  }
  const hmacSecret = fromBase64url(json.hmacSecret);
  if (hmacSecret === null) throw malformed('is no key file: look at "/hmacSecret"');
  const keys = json.keys.map((jwk, index) => {
    const key = storedKey(jwk);
    if (key !== null) return key;
    throw malformed(`has a key whose parts do not belong together: look at "/keys/${index}"`);
  });
  if (new Set(keys.map((key) => key.keyId)).size < keys.length) throw malformed('has a key twice');
  const { eventLog = null } = json;
  return { file: { keys, hmacSecret, secretCheck: secretCheck(hmacSecret), eventLog }, json };
}

/** Adds new keys in front, marks retired ones, and replaces the event log if there is one; everything else is unchanged. */
function changedText(
  json: KeyFileText,
  { fresh, retired, eventLog }: KeyFileChange & { readonly eventLog?: KnownLog },
): string {
  const kept = json.keys.map((jwk) =>
    retired.includes(jwk.kid) ? { ...jwk, status: 'retired' as const } : jwk,
  );
  return textOf({ ...json, keys: [...fresh.map(freshKey), ...kept], ...(eventLog && { eventLog }) });
}

const textOf = (value: KeyFileText): string => `${JSON.stringify(value, null, 2)}\n`;

function freshKey(purpose: string): PrivateJwk & { use: 'sig'; alg: 'EdDSA' } {
  for (;;) {
    const { x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
    if (x === undefined || d === undefined) throw new Error('the runtime exports no Ed25519 JWK');
    const kid = thumbprint(x);
    const key = { kty: 'OKP', crv: 'Ed25519', kid, x, d, use: 'sig', alg: 'EdDSA' } as const;
    // An id that begins with "-" would look like an option on a command line.
    if (!kid.startsWith('-')) return { ...key, purpose, status: 'active' };
  }
}

/** Another text gives other keys: it never changes. */
const AGENT_USE = 'web-bot-auth/1';

/** null if `d` is not the private key of `x`, or `kid` not its thumbprint: its signatures would not verify. */
function storedKey({ kid, x, d, purpose, status }: PrivateJwk): StoredKey | null {
  try {
    const privateKey = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' });
    if (publicX(privateKey) !== x || thumbprint(x) !== kid) return null;
    const agentKey = purpose === 'receipt' ? derivedKey(d, AGENT_USE) : null;
    return { purpose, status, x, ...ed25519SigningKey(kid, privateKey), agentKey };
  } catch {
    return null;
  }
}

/** The file at the end of symbolic links. Bun's realpath opens the file: one that is replaced meanwhile has no path. */
function linkTarget(path: string): string {
  return lstatSync(path).isSymbolicLink() ? linkTarget(resolve(dirname(path), readlinkSync(path))) : path;
}

/** Each process has the lock for some milliseconds. */
const LOCK_MS = 5000;

/** Runs `work` under the lock beside the file. Throws `KeyFileError` `key_file_busy` after `timeoutMs`. */
export function withKeyFileLock<T>(path: string, owner: Owner, work: () => T, timeoutMs = LOCK_MS): T {
  // The owner of the key file must be able to take its lock later.
  const lock = acquireFileLock(path, { timeoutMs, onCreate: (file) => setOwner(file, owner) });
  if (lock === null)
    throw new KeyFileError('key_file_busy', path, 'is being changed by another process: try again');
  try {
    return work();
  } finally {
    lock.release();
  }
}
