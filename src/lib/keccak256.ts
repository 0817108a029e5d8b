// Keccak-256 as Ethereum uses it, which is not the SHA-3 of the platforms.
import { keccak_256 } from '@noble/hashes/sha3';

/** 32 bytes. */
export const keccak256 = (bytes: Uint8Array): Uint8Array => keccak_256(bytes);
