// The address parser that the destination policy takes as an argument: ipaddr.js. It applies no rules.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { AddressFacts, Cidr } from '#src/domain/destination/addresses.ts';

/** null unless the text is an address in a standard form (no `127.1`, no octal numbers, no zone). */
export function describeAddress(text: string): AddressFacts | null {
  if (isIP(text) === 0 || text.includes('%')) return null;
  const address = ipaddr.parse(text);
  const ipv4 = address.kind() === 'ipv4';
  return {
    text: address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString(),
    family: ipv4 ? 4 : 6,
    bytes: address.toByteArray(),
    range: address.range(),
  };
}

/** `10.0.0.0/8`, `fd00::/8` or a single address; null for everything else. */
export function parseCidr(text: string): Cidr | null {
  const [address = '', prefix, ...rest] = text.trim().split('/');
  const facts = describeAddress(address);
  if (facts === null || rest.length > 0) return null;
  const bits = facts.bytes.length * 8;
  if (prefix === undefined) return { bytes: facts.bytes, prefix: bits };
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits
    ? { bytes: facts.bytes, prefix: Number(prefix) }
    : null;
}
