// Whose call it is, as rate limits count: the peer's address, or the one that proxies we trust vouch for.

export type TrustsProxy = (address: string) => boolean;

/**
 * The rightmost address that no trusted proxy speaks for. Each proxy appends the peer that it saw, so what stands
 * further left is the caller's own text. `peer`: of the socket; `forwardedFor`: X-Forwarded-For, all lines joined.
 */
export function clientAddress(peer: string, forwardedFor: string | null, trusted: TrustsProxy): string {
  let client = plainAddress(peer) ?? peer;
  if (forwardedFor === null) return client;
  for (const hop of forwardedFor.split(',').reverse()) {
    if (!trusted(client)) return client;
    const address = plainAddress(hop.trim());
    if (address === null) return client;
    client = address;
  }
  return client;
}

/** The name that a limit counts an address under: IPv4 whole, IPv6 by its /64, which is one customer's at least. */
export function countedAs(address: string): string {
  const groups = ipv6Groups(address);
  return groups === null ? address : `${groups.slice(0, 4).join(':')}::/64`;
}

/** Of an address as `clientAddress` gives it. */
export function isLoopback(address: string): boolean {
  return address === '::1' || (isIpv4(address) && address.startsWith('127.'));
}

/** Without port, brackets and zone; IPv4 where it was mapped into IPv6. null: not an address. */
function plainAddress(text: string): string | null {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+)(?::\d+)?$/.exec(text)?.[1] ?? text;
  const address = bare.replace(/%.*$/, '');
  if (isIpv4(address)) return address;
  const groups = ipv6Groups(address);
  if (groups === null) return null;
  const mapped = groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff';
  return mapped ? ipv4Of(groups[6], groups[7]) : hostnameOf(address);
}

function isIpv4(text: string): boolean {
  const parts = text.split('.');
  return (
    parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)
  );
}

/** Eight groups, lower case, no leading zeros; null for anything but an IPv6 address. The URL parser reads it. */
function ipv6Groups(text: string): readonly string[] | null {
  const hostname = text.includes(':') ? hostnameOf(text) : null;
  if (hostname === null) return null;
  const [left = '', right] = hostname.split('::');
  const head = left === '' ? [] : left.split(':');
  const tail = right === undefined || right === '' ? [] : right.split(':');
  return [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
}

function hostnameOf(ipv6: string): string | null {
  const url = `http://[${ipv6}]/`;
  return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : null;
}

function ipv4Of(high = '0', low = '0'): string {
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [a >> 8, a & 255, b >> 8, b & 255].join('.');
}
