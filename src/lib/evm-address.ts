// Addresses of EVM chains with the checksum of EIP-55, which is in the case of their letters.
import { keccak256 } from './keccak256.ts';

/** The address with its checksum. `address`: `0x` and 40 hex digits. */
export function checksummed(address: string): string {
  const digits = address.slice(2).toLowerCase();
  const hash = keccak256(new TextEncoder().encode(digits));
  const isUpper = (i: number) => ((hash[i >> 1] ?? 0) >> (i % 2 === 0 ? 4 : 0)) % 16 >= 8;
  return `0x${[...digits].map((digit, i) => (isUpper(i) ? digit.toUpperCase() : digit)).join('')}`;
}

/**
 * `absent`: all letters are of one case, as many tools write it, so that a wrong digit is not noticed. An address without
 * letters has its checksum.
 */
export function checksumOf(address: string): 'right' | 'wrong' | 'absent' {
  if (address === checksummed(address)) return 'right';
  const digits = address.slice(2);
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() ? 'absent' : 'wrong';
}
