// Ed25519 (RFC 8032) with node:crypto and key objects that are made once.
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { toBase64url } from '#src/domain/encoding.ts';
import { thumbprintText } from '#src/domain/signing-keys/keys.ts';
import type { SigningKey } from '../../ports/signer.ts';

/** The key that signs: one entry of the key file. */
export type Ed25519Key = { readonly keyId: string; readonly privateKey: KeyObject };

export function ed25519SigningKey(key: Ed25519Key): SigningKey {
  return {
    keyId: key.keyId,
    // async: a fault of the crypto library rejects, as the port promises
    async sign(message) {
      return new Uint8Array(sign(null, message, key.privateKey));
    },
  };
}

/** RFC 7638 thumbprint (SHA-256, base64url) of the Ed25519 public key `x` (RFC 8037: base64url, 32 bytes). */
export function thumbprint(x: string): string {
  return toBase64url(createHash('sha256').update(thumbprintText(x), 'utf8').digest());
}

/** The public half's `x` (RFC 8037). */
export function publicX(privateKey: KeyObject): string {
  // An Ed25519 SubjectPublicKeyInfo (RFC 8410 §4) ends in the 32 bytes of the key.
  return toBase64url(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32));
}

/** Ed25519's SubjectPublicKeyInfo (RFC 8410 §4) up to the key's 32 bytes. */
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');
/** More than a deployment ever has keys; an audit of strangers' receipts starts afresh, nothing more. */
const CACHED_KEYS = 64;
const publicKeys = new Map<string, KeyObject>();

/** False for anything but a good signature, also where key or signature have another size. Never rejects. */
export async function ed25519Verify(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  try {
    return verify(null, message, publicKeyObject(publicKey), signature);
  } catch {
    // 32 bytes that are no point of the curve
    return false;
  }
}

export function publicKeyObject(publicKey: Uint8Array): KeyObject {
  const x = toBase64url(publicKey);
  const cached = publicKeys.get(x);
  if (cached !== undefined) return cached;
  const made = createPublicKey({ key: Buffer.concat([SPKI_HEAD, publicKey]), format: 'der', type: 'spki' });
  if (publicKeys.size >= CACHED_KEYS) publicKeys.clear();
  publicKeys.set(x, made);
  return made;
}
