// `#sha256` under Bun and Deno: five to ten times as fast as the portable one.
import { hash } from 'node:crypto';

/** SHA-256 (FIPS 180-4): 32 bytes. */
export const sha256 = (bytes: Uint8Array): Uint8Array => new Uint8Array(hash('sha256', bytes, 'buffer'));
