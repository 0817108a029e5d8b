// The caller's headers: which are well-formed, which are forwarded to the target, and which are stripped.
import { LIMITS } from '#src/domain/limits.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';

export type HeaderPair = readonly [name: string, value: string];

export type JudgedHeaders = {
  /** Names in lower case, in the caller's order. */
  readonly forwarded: readonly HeaderPair[];
  /** Every stripped name, in lower case: the caller's own text, returned to the caller only. */
  readonly stripped: readonly string[];
};

/** Hop-by-hop, framing, proxy, cloud metadata and payment headers. `*`: every name with that prefix. */
export const STRIPPED = [
  'connection',
  'keep-alive',
  'proxy-*',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'content-length',
  'http2-settings',
  'via',
  'forwarded',
  'x-forwarded-*',
  'x-real-ip',
  'metadata*',
  'x-aws-ec2-metadata-token*',
  'x-google-metadata-request',
  'x-payment*',
  'payment-required',
  'payment-signature',
  'payment-response',
  // Set by this service on every call: the response is hashed as received, and the target can identify the caller.
  'accept-encoding',
  'user-agent',
] as const;
const SIGNED_TRIO = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const;

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;

export const isHeaderName = (name: string): boolean => TOKEN.test(name);

/** Whether the header can be sent as it is. */
export const isHeader = (name: string, value: string): boolean => TOKEN.test(name) && VALUE.test(value);

export function judgeHeaders(
  headers: Readonly<Record<string, string | number | boolean>>,
  place = '/headers',
): JudgedHeaders | Refused<'invalid_request'> {
  const pairs = Object.entries(headers).map(
    ([name, value]): HeaderPair => [name.toLowerCase(), String(value)],
  );
  const fault = faultOf(Object.keys(headers), pairs);
  if (fault !== null)
    return refused('invalid_request', fault, { details: [{ path: place, message: fault }] });

  const listed = listedByConnection(pairs);
  const kept = pairs.filter(([name]) => !isStripped(name, listed)).map(([name]) => name);
  const signed = SIGNED_TRIO.every((name) => kept.includes(name));
  const isForwarded = ([name]: HeaderPair) => !isStripped(name, listed) && (signed || !isSigned(name));
  return {
    forwarded: pairs.filter(isForwarded),
    stripped: pairs.filter((pair) => !isForwarded(pair)).map(([name]) => name),
  };
}

/** Why the headers cannot be sent at all; null if they can. Does not contain the caller's text. */
function faultOf(names: readonly string[], pairs: readonly HeaderPair[]): string | null {
  const [count, bytes] = [LIMITS.targetHeaders.max, LIMITS.targetHeaderBytes.max];
  if (pairs.length > count) return `There must be at most ${count} headers.`;
  // The names as given: the lower case of the Kelvin sign is a plain k.
  if (!names.every((name) => TOKEN.test(name))) return 'A header name must be a token (RFC 9110).';
  if (!pairs.every(([, value]) => VALUE.test(value))) {
    return 'A header value must be visible ASCII, spaces and tabs.';
  }
  if (new Set(pairs.map(([name]) => name)).size < pairs.length) {
    return 'Two header names must not differ in case only.';
  }
  const size = pairs.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  return size > bytes ? `The headers must be at most ${bytes} bytes.` : null;
}

function listedByConnection(pairs: readonly HeaderPair[]): ReadonlySet<string> {
  const value = pairs.find(([name]) => name === 'connection')?.[1] ?? '';
  return new Set(value.split(',').map((name) => name.trim().toLowerCase()));
}

function isStripped(name: string, listed: ReadonlySet<string>): boolean {
  const inList = STRIPPED.some((entry) =>
    entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : name === entry,
  );
  return inList || listed.has(name);
}

function isSigned(name: string): boolean {
  return SIGNED_TRIO.some((member) => member === name);
}
