// What is known of a request before its route is: its id, the client's address, and the headers that its answer carries,
// whatever it is.
import type { TrustsProxy } from '#src/http/deps.ts';
import type { Entropy } from '#src/ports/clock.ts';

export type RequestContext = {
  /** The caller's x-request-id if it is well-formed, else ours. */
  readonly id: string;
  client: string;
  /** Set on the answer, also if that is an error thrown from anywhere. */
  readonly headers: Map<string, string>;
  /** The pattern of the route; null: no route has the path. */
  route: string | null;
};

/** Elysia passes the same Request object to every hook and handler. */
const contexts = new WeakMap<Request, RequestContext>();

export function setContext(request: Request, context: RequestContext): void {
  contexts.set(request, context);
}

export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request);
  if (context === undefined) throw new Error('the request did not pass the pipeline');
  return context;
}

const WELL_FORMED_ID = /^[A-Za-z0-9._-]{1,128}$/;

export function requestId(given: string | null, entropy: Entropy): string {
  return given !== null && WELL_FORMED_ID.test(given) ? given : entropy.uuid();
}

/**
 * The rightmost address that no trusted proxy vouches for. Each proxy appends the peer that it saw, so everything further
 * left is the caller's own text. `peer`: of the socket; `forwardedFor`: X-Forwarded-For, all lines joined.
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

/** The name that a limit counts an address under: IPv4 whole, IPv6 by its /64, which one customer has at least. */
export function countedAs(address: string): string {
  const groups = ipv6Groups(address);
  return groups === null ? address : `${groups.slice(0, 4).join(':')}::/64`;
}

export function isLoopbackClient(address: string): boolean {
  return address === '::1' || (isIpv4(address) && address.startsWith('127.'));
}

/** Without port, brackets and zone; IPv4 if it was mapped into IPv6. null: not an address. */
function plainAddress(text: string): string | null {
  if (isIpv4(text)) return text;
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+)(?::\d+)?$/.exec(text)?.[1] ?? text;
  const address = bare.replace(/%.*$/, '');
  if (isIpv4(address)) return address;
  const groups = ipv6Groups(address);
  if (groups === null) return null;
  const mapped = groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff';
  return mapped ? ipv4Of(groups[6], groups[7]) : hostnameOf(address);
}

const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);

const isIpv4 = (text: string): boolean => IPV4.test(text);

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
  return URL.parse(`http://[${ipv6}]/`)?.hostname.slice(1, -1) ?? null;
}

function ipv4Of(high = '0', low = '0'): string {
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [a >> 8, a & 255, b >> 8, b & 255].join('.');
}
