// Host names: their form, and those that never name a public host, whatever DNS answers.

/** Each entry covers itself and every name under it. */
const RESERVED = [
  'localhost',
  'local',
  'internal',
  'home.arpa',
  'onion',
  'localdomain',
  'svc',
  'lan',
  'corp',
  'home',
  'intranet',
  'private',
  'in-addr.arpa',
  'ip6.arpa',
  'metadata.goog',
] as const;

export function isReservedName(hostname: string): boolean {
  return RESERVED.some((name) => isWithin(hostname, name));
}

/** True for `name` and for every name under it. */
export function isWithin(hostname: string, name: string): boolean {
  return hostname === name || hostname.endsWith(`.${name}`);
}

/** Two labels or more, each of 1 to 63 letters, digits, `-` and `_`, 253 characters in all (RFC 1035 §2.3.4). */
export function isSpellableName(hostname: string): boolean {
  return hostname.length <= 253 && /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+$/.test(hostname);
}

/** A parsed URL's host. `hostname`: without brackets and trailing dot. `authority`: as in a URL and a Host header. */
export function hostOf(parsed: string): { hostname: string; literal: boolean; authority: string } {
  if (parsed.startsWith('[')) return { hostname: parsed.slice(1, -1), literal: true, authority: parsed };
  const hostname = parsed.replace(/\.$/, '');
  // The parser reads every host whose last label is a number as IPv4 and writes it with four parts, or fails.
  return { hostname, literal: /^\d+\.\d+\.\d+\.\d+$/.test(hostname), authority: hostname };
}

/** `pattern`: a host name, or `*.` and a name, which matches every name under it. */
export function matchesHost(hostname: string, pattern: string): boolean {
  return pattern.startsWith('*.') ? hostname.endsWith(pattern.slice(1)) : hostname === pattern;
}
