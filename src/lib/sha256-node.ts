// `#sha256` under Bun and Deno: five to ten times as fast as the portable one.
import { createHash } from 'node:crypto';

/** SHA-256 (FIPS 180-4): 32 bytes. */
export const sha256 = (bytes: Uint8Array): Uint8Array =>
  new Uint8Array(createHash('sha256').update(bytes).digest());
