// `#sha256` in a browser, and for the compiler, so that the domain stays free of the runtimes' types.
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';

/** SHA-256 (FIPS 180-4): 32 bytes. */
export const sha256 = (bytes: Uint8Array): Uint8Array => nobleSha256(bytes);
