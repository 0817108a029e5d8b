// Addresses of EVM chains with the checksum of EIP-55, which is in the case of their letters.
// Keccak-256 as Ethereum uses it, which is not the SHA-3 of the platforms.
import { keccak_256 } from '@noble/hashes/sha3';

/** The address with its checksum. `address`: `0x` and 40 hex digits. */
export function checksummed(address: string): string {
  const digits = address.slice(2).toLowerCase();
  const hash = keccak_256(new TextEncoder().encode(digits));
  const isUpper = (i: number) => ((hash[i >> 1] ?? 0) >> (i % 2 === 0 ? 4 : 0)) % 16 >= 8;
  return `0x${[...digits].map((digit, i) => (isUpper(i) ? digit.toUpperCase() : digit)).join('')}`;
}

/**
 * `absent`: all letters are of one case, as many tools write it, so that a wrong digit is not noticed. An address without
 * letters has its checksum.
 */
export function checksumState(address: string): 'right' | 'wrong' | 'absent' {
  if (address === checksummed(address)) return 'right';
  const digits = address.slice(2);
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() ? 'absent' : 'wrong';
}
