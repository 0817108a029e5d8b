// Real cryptography from node:crypto for tests, written apart from the adapters so that the two can disagree.
import { createHash, createHmac, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import type { KeyedHash, Signer, SigningKey } from '#src/ports/signer.ts';

export const sha256 = (bytes: Uint8Array | string): Uint8Array =>
  new Uint8Array(createHash('sha256').update(bytes).digest());

export const hashWith = (secret: string): KeyedHash => ({
  mac: (label, text) => new Uint8Array(createHmac('sha256', secret).update(`${label}\0${text}`).digest()),
});

export const primitives: Primitives = {
  ed25519Verify: (x, message, signature) => {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(x).toString('base64url') };
    return verify(null, message, createPublicKey({ key: jwk, format: 'jwk' }), signature);
  },
};

export type TestKey = SigningKey & { readonly x: string; readonly record: KeyRecord };

/** A fresh key pair; its record is valid from the epoch on. */
export function testKey(changes: Partial<KeyRecord> = {}): TestKey {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const x = String(publicKey.export({ format: 'jwk' }).x);
  const keyId = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url');
  const window = { notBefore: 0, notAfter: null, compromisedAt: null };
  return {
    keyId,
    x,
    sign: async (message) => new Uint8Array(sign(null, message, privateKey)),
    record: { keyId, x, purpose: 'receipt', ...window, ...changes },
  };
}

/** Signs everything with one key. */
export const signerOf = (key: SigningKey): Signer => ({ current: () => key, former: () => key });
