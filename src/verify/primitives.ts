// Ed25519 verification by WebCrypto, which Bun, Deno, Node and browsers provide; ML-DSA-44 where they have it.
import { mlDsa44Verify } from '#src/lib/ml-dsa.ts';
import type { Primitives } from '../domain/signing-keys/keys.ts';

/** The runtime cannot verify signatures, so nothing was checked. `message`: for people. */
export class CannotVerify extends Error {
  override readonly name = 'CannotVerify';
}

export const webPrimitives: Primitives = {
  async ed25519Verify(publicKey, message, signature) {
    const key = await imported(publicKey);
    if (key === null) return false;
    return subtle().verify('Ed25519', key, Uint8Array.from(signature), Uint8Array.from(message));
  },
  mlDsa44Verify,
};

/** null: the bytes are no public key (no point of the curve). */
async function imported(publicKey: Uint8Array): Promise<CryptoKey | null> {
  try {
    return await subtle().importKey('raw', Uint8Array.from(publicKey), 'Ed25519', false, ['verify']);
  } catch (error) {
    if (error instanceof Error && error.name === 'NotSupportedError')
      throw new CannotVerify('WebCrypto does not support Ed25519 here: use a newer browser or runtime.');
    if (error instanceof Error && error.name === 'DataError') return null;
    throw error;
  }
}

function subtle(): Crypto['subtle'] {
  // Browsers leave it out on pages that came over plain HTTP from another machine.
  const { crypto }: { readonly crypto?: Partial<Crypto> } = globalThis;
  if (crypto?.subtle === undefined)
    throw new CannotVerify(
      'There is no WebCrypto here: browsers offer it only on pages from HTTPS or localhost.',
    );
  return crypto.subtle;
}
