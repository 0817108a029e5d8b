// Which target URLs may be called, by the URL's text, parts and host name alone. policy.ts judges addresses.
import { ALLOWED, type Allowed, type Refused, refused } from '#src/domain/refusal.ts';

/** A URL, parsed once: this value is judged, called, hashed and recorded. */
export type Target = {
  /** Normalised, without fragment, the host without its trailing dot. The one text that is hashed and recorded. */
  readonly href: string;
  readonly origin: string;
  /** Lower case, punycode, no trailing dot, no brackets around IPv6. */
  readonly hostname: string;
  readonly port: number;
  /** Path and query as sent on the request line. */
  readonly path: string;
  /** Whether `hostname` is an IP address. */
  readonly literal: boolean;
  /** False if the text names a user or the parser repaired it: other parsers repair it differently. */
  readonly plain: boolean;
};

export type UrlRules = {
  /** The only ports that may be called; null: all but the bad ports, which are never called. */
  readonly ports: readonly number[] | null;
  readonly own: OwnHost;
};

/** This service's own host, from PUBLIC_BASE_URL. */
export type OwnHost = {
  /** As `Target.hostname`; null if the base URL has an IP address (see policy.ts). */
  readonly hostname: string | null;
  /** The only URL of this service that may be called. */
  readonly canary: string;
};

export const CANARY_PATH = '/api/canary/echo';

/** `base`: PUBLIC_BASE_URL. */
export function ownHostOf(base: URL): OwnHost {
  const { hostname, literal, authority } = hostOf(base.hostname);
  const port = base.port === '' ? '' : `:${base.port}`;
  return {
    hostname: literal ? null : hostname,
    canary: `${base.protocol}//${authority}${port}${base.pathname.replace(/\/+$/, '')}${CANARY_PATH}`,
  };
}

const UNSAFE = 'The target is not a public HTTPS endpoint that this service calls.';
/** One message for every reason: it reveals nothing about what a name or an address belongs to. */
export const unsafeTarget = (): Refused<'unsafe_target'> => refused('unsafe_target', UNSAFE);

/** The text of the URL is the cause, whatever the host is: this reveals nothing. */
const unsafeText = (reason: 'port' | 'url_form', message: string): Refused<'unsafe_target'> =>
  refused('unsafe_target', message, { details: { reason } });

/** Refused unless the text is an absolute https URL. `place`: JSON pointer of the text, for errors. */
export function readTarget(text: string, place = '/url'): Target | Refused<'invalid_request'> {
  const parts = URL.parse(text);
  if (parts === null || parts.protocol !== 'https:') {
    const message = 'The url must be an absolute HTTPS URL.';
    return refused('invalid_request', message, { details: [{ path: place, message }] });
  }
  return targetOf(parts, text);
}

/** The verdict on the URL's text and parts. */
export function judgeUrl(target: Target, rules: UrlRules): Allowed | Refused<'unsafe_target'> {
  const { plain, port, hostname, literal, href } = target;
  if (!plain)
    return unsafeText(
      'url_form',
      'The url must be plain: no user name, no backslash, blank or control character.',
    );
  if (BAD_PORTS.has(port) || rules.ports?.includes(port) === false)
    return unsafeText('port', `This service calls no target on port ${port}.`);
  if (!literal && (!isSpellableName(hostname) || isReservedName(hostname))) return unsafeTarget();
  return hostname === rules.own.hostname && href !== rules.own.canary ? unsafeTarget() : ALLOWED;
}

/** Backslashes, blanks, control characters, a wrong number of slashes, or an `@` before the host. */
function isRepaired(text: string): boolean {
  return /[\\\s\p{Cc}]/u.test(text) || !/^https:\/\/[^/?#@]+(?:[/?#]|$)/i.test(text);
}

function targetOf(parts: URL, text: string): Target {
  const { hostname, literal, authority } = hostOf(parts.hostname);
  const host = `${authority}${parts.port === '' ? '' : `:${parts.port}`}`;
  const path = `${parts.pathname}${parts.search}`;
  const user = parts.username === '' && parts.password === '' ? '' : `${parts.username}:${parts.password}@`;
  return {
    href: `https://${user}${host}${path}`,
    origin: `https://${host}`,
    hostname,
    port: parts.port === '' ? 443 : Number(parts.port),
    path,
    literal,
    plain: user === '' && !isRepaired(text),
  };
}

/** Ports of other protocols ("bad port" in the Fetch Standard, and 0). */
const BAD_PORTS: ReadonlySet<number> = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

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

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** The origin of a relay to which payments may be sent: over TLS, or on this machine. null: not one, or more than an origin. */
export function relayOrigin(text: string): string | null {
  const url = URL.parse(text);
  const safe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.test(url.hostname));
  return url !== null && safe && url.href === `${url.origin}/` ? url.origin : null;
}

/** `pattern`: a host name, or `*.` and a name, which matches every name under it. */
export function matchesHost(hostname: string, pattern: string): boolean {
  return pattern.startsWith('*.') ? hostname.endsWith(pattern.slice(1)) : hostname === pattern;
}
