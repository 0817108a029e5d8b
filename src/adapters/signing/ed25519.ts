// Ed25519 (RFC 8032) with node:crypto and cached key objects.
import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  hash,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { setImmediate } from 'node:timers';
import { toBase64url } from '#src/domain/encoding.ts';
import { thumbprintText } from '#src/domain/signing-keys/keys.ts';
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import type { PublishedKey, SigningKey } from '#src/ports/signer.ts';

export const ed25519SigningKey = (keyId: string, privateKey: KeyObject): SigningKey => ({
  keyId,
  sign: async (message) => new Uint8Array(sign(null, message, privateKey)),
});

/** RFC 7638 thumbprint (SHA-256, base64url) of the Ed25519 public key `x` (RFC 8037: base64url, 32 bytes). */
export function thumbprint(x: string): string {
  return toBase64url(createHash('sha256').update(thumbprintText(x), 'utf8').digest());
}

/** An Ed25519 private key (RFC 8410 §7) up to its 32 bytes. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/**
 * Another key of the owner of `d` (RFC 8037: base64url), for one use. Its seed is the HMAC-SHA-256 of the use under `d`: who
 * has it learns nothing about `d`, and nothing is stored.
 */
export function derivedKey(d: string, use: string): PublishedKey {
  const seed = createHmac('sha256', Buffer.from(d, 'base64url')).update(use).digest();
  const der = Buffer.concat([PKCS8_HEAD, seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const x = publicX(privateKey);
  return { x, ...ed25519SigningKey(thumbprint(x), privateKey) };
}

/** The public half's `x` (RFC 8037). */
export function publicX(privateKey: KeyObject): string {
  // An Ed25519 SubjectPublicKeyInfo (RFC 8410 §4) ends with the 32 bytes of the key.
  return toBase64url(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32));
}

type Verify = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => Promise<boolean>;

/** False for everything but a valid signature, also if key or signature have another size. Never rejects. */
const verifier =
  (run: (key: KeyObject, message: Uint8Array, signature: Uint8Array) => boolean | Promise<boolean>): Verify =>
  async (publicKey, message, signature) => {
    if (!haveSizes(publicKey, signature)) return false;
    try {
      return await run(publicKeyObject(publicKey), message, signature);
    } catch {
      // 32 bytes that are not a point of the curve.
      return false;
    }
  };

const haveSizes = (publicKey: Uint8Array, signature: Uint8Array) =>
  publicKey.length === 32 && signature.length === 64;

export const ed25519Verify = verifier((key, message, signature) => verify(null, message, key, signature));

/** About 100 bytes each. */
const REMEMBERED = 4096;

/** The same; the last valid signatures are remembered by all bytes of key, signature and message. */
export function rememberingVerify(): Verify {
  const valid = new Set<string>();
  return async (publicKey, message, signature) => {
    if (!haveSizes(publicKey, signature)) return false;
    const name = hash('sha256', Buffer.concat([publicKey, signature, message]), 'base64');
    if (valid.has(name)) return true;
    const isValid = await ed25519Verify(publicKey, message, signature);
    if (isValid) valid.add(name);
    if (valid.size > REMEMBERED) deleteOldest(valid);
    return isValid;
  };
}

/**
 * The same in the runtime's thread pool: thousands of receipts do not block the event loop. Each call of the pool wakes a
 * thread, which costs as much as a signature: they are handed over many at a time.
 */
export function ed25519VerifyInThreadPool(): Verify {
  let waiting: (() => void)[] = [];
  const handOver = () => {
    const all = waiting;
    waiting = [];
    for (const start of all) start();
  };
  return verifier(
    (key, message, signature) =>
      new Promise((resolve) => {
        waiting.push(() => {
          try {
            verify(null, message, key, signature, (error, valid) => resolve(error === null && valid));
          } catch {
            resolve(false);
          }
        });
        if (waiting.length === 1) setImmediate(handOver);
        else if (waiting.length === HANDED_OVER) handOver();
      }),
  );
}

const HANDED_OVER = 64;

/** Ed25519's SubjectPublicKeyInfo (RFC 8410 §4) up to the key's 32 bytes. */
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');
/** More than the keys of one deployment. The cache is cleared when it is full. */
const CACHED_KEYS = 64;
const publicKeys = new Map<string, KeyObject>();

function publicKeyObject(publicKey: Uint8Array): KeyObject {
  const x = toBase64url(publicKey);
  const cached = publicKeys.get(x);
  if (cached !== undefined) return cached;
  const made = createPublicKey({ key: Buffer.concat([SPKI_HEAD, publicKey]), format: 'der', type: 'spki' });
  if (publicKeys.size >= CACHED_KEYS) publicKeys.clear();
  publicKeys.set(x, made);
  return made;
}
