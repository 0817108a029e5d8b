// HMAC-SHA-256 (RFC 2104) under the secret that never leaves.
import { createHmac } from 'node:crypto';
import { toHex } from '#src/domain/encoding.ts';
import type { KeyedHash } from '../../ports/signer.ts';

/** `secret`: 32 bytes. */
export function hmacKeyedHash(secret: Uint8Array): KeyedHash {
  if (secret.length !== 32) throw new RangeError('the HMAC secret has 32 bytes');
  const key = Uint8Array.from(secret);
  return {
    mac(label, text) {
      // a zero byte in a label could move the border between label and text
      if (label.includes('\0')) throw new RangeError('a label has no zero byte');
      return new Uint8Array(createHmac('sha256', key).update(`${label}\0${text}`, 'utf8').digest());
    },
  };
}

/** Tells two secrets apart without telling either: the HMAC of a constant, lower-case hex (SigningKeyActivated). */
export const secretCheck = (secret: Uint8Array): string =>
  toHex(hmacKeyedHash(secret).mac('secret-check', 'relay/1'));
