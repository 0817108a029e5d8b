// Ed25519 verification beside this thread: for who has thousands of receipts to judge and other work meanwhile.
import { verify } from 'node:crypto';
import { publicKeyObject } from './ed25519.ts';

/** As `ed25519Verify`, in the runtime's thread pool. Never rejects. */
export async function ed25519VerifyBeside(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  try {
    const key = publicKeyObject(publicKey);
    return await new Promise((resolve) => {
      verify(null, message, key, signature, (error, valid) => resolve(error === null && valid));
    });
  } catch {
    // 32 bytes that are no point of the curve
    return false;
  }
}
