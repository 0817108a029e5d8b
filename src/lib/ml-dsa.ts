// ML-DSA-44 (FIPS 204, with an empty context) by WebCrypto, which Bun, Deno and current browsers have.

const ALGORITHM = 'ML-DSA-44';
const PUBLIC_KEY_BYTES = 1312;
const SIGNATURE_BYTES = 2420;
/** SubjectPublicKeyInfo (RFC 9881) up to the key's 1312 bytes. */
const SPKI_HEAD = [
  0x30, 0x82, 0x05, 0x32, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x11, 0x03,
  0x82, 0x05, 0x21, 0x00,
];

/** False also for a key or a signature of another size; null: this runtime has no ML-DSA-44. */
export async function mlDsa44Verify(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean | null> {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
  const { crypto }: { readonly crypto?: Partial<Crypto> } = globalThis;
  if (crypto?.subtle === undefined) return null;
  const spki = Uint8Array.from([...SPKI_HEAD, ...publicKey]);
  try {
    const key = await crypto.subtle.importKey('spki', spki, ALGORITHM, false, ['verify']);
    return await crypto.subtle.verify(ALGORITHM, key, Uint8Array.from(signature), Uint8Array.from(message));
  } catch (error) {
    if (error instanceof Error && error.name === 'NotSupportedError') return null;
    throw error;
  }
}
