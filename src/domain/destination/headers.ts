// The headers that the target gets: which of the caller's are well-formed, forwarded or stripped, and those by which the
// target can identify and verify this service.

import { concatBytes, toBase64, utf8 } from '#src/domain/encoding.ts';
import { LIMITS, SERVICE } from '#src/domain/limits.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import { type MessageKey, requestSignature, type SignedRequest } from './message-signature.ts';

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

/** Of the response of a target, whatever its caller and the operator choose. */
export const RETURNED_HEADERS = ['content-type', 'retry-after'];

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
  const isForwarded = ([name]: HeaderPair) =>
    !isStripped(name, listed) && (signed || !SIGNED_TRIO.some((member) => member === name));
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

export type CallFacts = {
  readonly jobId: string;
  /** PUBLIC_BASE_URL. */
  readonly baseUrl: string;
  /** This service's `received-by` in Via (RFC 9110 §7.6.3): host and port of PUBLIC_BASE_URL. */
  readonly pseudonym: string;
  /** Unix time of this attempt, whole seconds. */
  readonly timestampSeconds: number;
  /** Exact bytes; null: no body. */
  readonly body: Uint8Array | null;
};

/** 64-byte Ed25519 signature with the relay's published key. */
export type SignBytes = (message: Uint8Array) => Promise<Uint8Array>;

/** What signs the request as a whole (RFC 9421), beside the delivery's own signature. */
export type AgentSigning = Pick<SignedRequest, 'method' | 'authority' | 'path' | 'nonce'> & {
  readonly key: MessageKey;
};

/**
 * All headers of one attempt but Host, Content-Length and Connection; names in lower case, each once. `agent` null: without a
 * message signature.
 */
export async function buildOutboundHeaders(
  headers: JudgedHeaders,
  call: CallFacts,
  sign: SignBytes,
  agent: AgentSigning | null = null,
): Promise<readonly HeaderPair[]> {
  const given = new Set(headers.forwarded.map(([name]) => name));
  const unlessGiven = (name: string, value: string): HeaderPair[] => (given.has(name) ? [] : [[name, value]]);
  const { baseUrl, body, timestampSeconds } = call;
  const request = agent && { ...agent, body, agent: baseUrl, created: timestampSeconds };
  return [
    ...headers.forwarded,
    ...(call.body === null ? [] : unlessGiven('content-type', 'application/json')),
    ...unlessGiven('idempotency-key', call.jobId),
    ['user-agent', `${SERVICE.name}/${SERVICE.version} (+${call.baseUrl})`],
    ['via', `1.1 ${call.pseudonym}`],
    ['accept-encoding', 'identity'],
    ...(given.has('webhook-signature') ? [] : await webhookSignature(call, sign)),
    ...(request === null ? [] : await requestSignature(headers.forwarded, request, request.key)),
  ];
}

/** Standard Webhooks 1.0.0, asymmetric: `v1a,` and base64 of Ed25519 over `id.timestamp.body`. */
async function webhookSignature(call: CallFacts, sign: SignBytes): Promise<HeaderPair[]> {
  const timestamp = String(call.timestampSeconds);
  const signed = concatBytes(utf8(`${call.jobId}.${timestamp}.`), call.body ?? new Uint8Array());
  return [
    ['webhook-id', call.jobId],
    ['webhook-timestamp', timestamp],
    ['webhook-signature', `v1a,${toBase64(await sign(signed))}`],
  ];
}

/** Whether the request came through this relay: one of its Via entries names it. */
export function isOwnLoop(via: string | null, pseudonym: string): boolean {
  return (via ?? '').split(',').some((entry) => {
    const [, receivedBy] = entry.trim().split(/[ \t]+/);
    return receivedBy?.toLowerCase() === pseudonym.toLowerCase();
  });
}
