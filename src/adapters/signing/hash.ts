// HMAC-SHA-256 (RFC 2104) under the secret of the key file.
import { createHmac } from 'node:crypto';
import { toHex } from '#src/domain/encoding.ts';
import type { KeyedHash } from '#src/ports/signer.ts';

/** `secret`: 32 bytes. */
export function hmacKeyedHash(secret: Uint8Array): KeyedHash {
  if (secret.length !== 32) throw new RangeError('the HMAC secret has 32 bytes');
  const key = Uint8Array.from(secret);
  return {
    mac(label, text) {
      // Otherwise two pairs of label and text could have the same bytes.
      if (label.includes('\0')) throw new RangeError('a label has no zero byte');
      return new Uint8Array(createHmac('sha256', key).update(`${label}\0${text}`, 'utf8').digest());
    },
  };
}

/** The HMAC of a constant, lower-case hex: compares secrets without revealing them (SigningKeyActivated). */
export const secretCheck = (secret: Uint8Array): string =>
  toHex(hmacKeyedHash(secret).mac('secret-check', 'relay/1'));
