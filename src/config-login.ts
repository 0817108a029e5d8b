// How the variables of the facilitator's login become values: an API key of Coinbase's developer platform (CDP), or headers
// from a file.
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { type Parse, Problem, serviceUrl } from './config-values.ts';

/** A private key, as a JSON Web Key (RFC 8037, RFC 7518). */
export type LoginKey =
  | { readonly algorithm: 'EdDSA'; readonly jwk: { kty: 'OKP'; crv: 'Ed25519'; x: string; d: string } }
  | {
      readonly algorithm: 'ES256';
      readonly jwk: { kty: 'EC'; crv: 'P-256'; x: string; y: string; d: string };
    };

/** Operations are paths below it. */
export const facilitatorUrl: Parse<string> = (text) => {
  if (/[?#]/.test(text))
    throw new Problem('must have no query: a key belongs in X402_FACILITATOR_HEADERS_FILE');
  return serviceUrl(text);
};

/** A UUID, or `organizations/…/apiKeys/…`. */
export const apiKeyId: Parse<string> = (text) => {
  if (!/^[\x21-\x7e]{1,200}$/.test(text)) throw new Problem('must be the id of an API key, without blanks');
  return text;
};

/** Both forms in which CDP issues secrets. In a PEM text, `\n` may be written for a line break. */
export const apiKeySecret: Parse<LoginKey> = (text) => {
  const key = text.includes('-----BEGIN') ? p256Key(text.replaceAll('\\n', '\n')) : ed25519Key(text);
  if (key !== null) return key;
  throw new Problem(
    'must be the secret of an API key: base64 of 64 bytes (Ed25519), or a PEM private key on curve P-256 (ES256)',
  );
};

/** PKCS #8 of an Ed25519 private key, up to its 32 bytes (RFC 8410 §7). */
const ED25519_PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** 32 bytes of the private key, then 32 of its public key; null if these do not belong together. */
function ed25519Key(text: string): LoginKey | null {
  if (!/^[A-Za-z0-9+/_-]{86}(==)?$/.test(text)) return null;
  const bytes = Buffer.from(text, 'base64');
  const [seed, publicKey] = [bytes.subarray(0, 32), bytes.subarray(32)];
  const key = createPrivateKey({
    key: Buffer.concat([ED25519_PKCS8, seed]),
    format: 'der',
    type: 'pkcs8',
  });
  const x = publicKey.toString('base64url');
  if (createPublicKey(key).export({ format: 'jwk' }).x !== x) return null;
  return { algorithm: 'EdDSA', jwk: { kty: 'OKP', crv: 'Ed25519', x, d: seed.toString('base64url') } };
}

/** `BEGIN EC PRIVATE KEY` (SEC 1) or `BEGIN PRIVATE KEY` (PKCS #8). */
function p256Key(pem: string): LoginKey | null {
  try {
    const { kty, crv, x = '', y = '', d = '' } = createPrivateKey(pem).export({ format: 'jwk' });
    if (kty !== 'EC' || crv !== 'P-256') return null;
    return { algorithm: 'ES256', jwk: { kty, crv, x, y, d } };
  } catch {
    // Its text may contain the key.
    return null;
  }
}

const MAX_FILE_BYTES = 64 * 1024;
const MAX_HEADERS = 16;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e\t]{0,8190}[\x21-\x7e])?$/;
/** Set by the relay itself, or by the runtime. */
const OWN_HEADERS =
  /^(?:accept|accept-encoding|connection|content-.+|expect|host|keep-alive|proxy-.+|te|trailer|transfer-encoding|upgrade)$/;

/** Lines `name: value`, or a JSON object of names and texts; mode 0600. Names in lower case. */
export const headersFile: Parse<Readonly<Record<string, string>>> = (path) => {
  const text = readOwnersFile(path).trim();
  const headers = new Map<string, string>();
  for (const [place, name, value] of text.startsWith('{') ? jsonEntries(text) : lineEntries(text)) {
    if (!NAME.test(name) || !VALUE.test(value)) throw new Problem(`names a file whose ${place} is no header`);
    const lower = name.toLowerCase();
    if (OWN_HEADERS.test(lower)) throw new Problem(`names a file whose ${place} is set by the relay itself`);
    if (headers.has(lower)) throw new Problem(`names a file whose ${place} repeats a header`);
    headers.set(lower, value);
  }
  if (headers.size === 0 || headers.size > MAX_HEADERS)
    throw new Problem(`names a file without headers, or with over ${MAX_HEADERS} of them`);
  return Object.fromEntries(headers);
};

type Entry = readonly [place: string, name: string, value: string];

/** Empty lines and lines that begin with # are skipped. */
function lineEntries(text: string): Entry[] {
  return text.split(/\r?\n/).flatMap((line, at): Entry[] => {
    if (/^\s*(#|$)/.test(line)) return [];
    const colon = line.indexOf(':');
    return [[`line ${at + 1}`, line.slice(0, Math.max(colon, 0)).trim(), line.slice(colon + 1).trim()]];
  });
}

function jsonEntries(text: string): Entry[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Its message may quote the text.
    throw new Problem('names a file that begins as JSON and is none');
  }
  return Object.entries(value as Readonly<Record<string, unknown>>).map(([name, content], at) => [
    `member ${at + 1}`,
    name,
    typeof content === 'string' ? content : '',
  ]);
}

/** The mode is read from the open descriptor, so that the file cannot be replaced in between. */
function readOwnersFile(path: string): string {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    throw new Problem('names a file that cannot be opened');
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Problem('names something that is no file');
    if ((stat.mode & 0o077) !== 0) throw new Problem('names a file that others can read: chmod 600 it');
    if (stat.size > MAX_FILE_BYTES) throw new Problem(`names a file of over ${MAX_FILE_BYTES} bytes`);
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}
