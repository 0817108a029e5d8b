// What the target gets: the caller's headers, and ours, by which it can tell who calls and check it.
import { concatBytes, toBase64url, utf8 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { HeaderPair, JudgedHeaders } from './headers.ts';

export type CallFacts = {
  readonly jobId: string;
  /** PUBLIC_BASE_URL. */
  readonly baseUrl: string;
  /** What stands in our Via: see `relayPseudonym`. */
  readonly pseudonym: string;
  /** Unix time of this attempt, whole seconds. */
  readonly timestampSeconds: number;
  /** Exact bytes; null: no body. */
  readonly body: Uint8Array | null;
};

/** 64-byte Ed25519 signature with the relay's published key. */
export type SignBytes = (message: Uint8Array) => Promise<Uint8Array>;

/** All of one attempt's headers but Host, Content-Length and Connection; names in lower case, each once. */
export async function buildOutboundHeaders(
  headers: JudgedHeaders,
  call: CallFacts,
  sign: SignBytes,
): Promise<readonly HeaderPair[]> {
  const given = new Set(headers.forwarded.map(([name]) => name));
  const unlessGiven = (name: string, value: string): HeaderPair[] => (given.has(name) ? [] : [[name, value]]);
  return [
    ...headers.forwarded,
    ...(call.body === null ? [] : unlessGiven('content-type', 'application/json')),
    ...unlessGiven('idempotency-key', call.jobId),
    ['user-agent', `${SERVICE.name}/${SERVICE.version} (+${call.baseUrl})`],
    ['via', `1.1 ${call.pseudonym}`],
    ['accept-encoding', 'identity'],
    ...(given.has('webhook-signature') ? [] : await webhookSignature(call, sign)),
  ];
}

/** Standard Webhooks 1.0.0, asymmetric: `v1a,` and base64 of Ed25519 over `id.timestamp.body`. */
async function webhookSignature(call: CallFacts, sign: SignBytes): Promise<HeaderPair[]> {
  const timestamp = String(call.timestampSeconds);
  const signed = concatBytes(utf8(`${call.jobId}.${timestamp}.`), call.body ?? new Uint8Array());
  return [
    ['webhook-id', call.jobId],
    ['webhook-timestamp', timestamp],
    ['webhook-signature', `v1a,${base64(await sign(signed))}`],
  ];
}

/** RFC 4648 §4, with padding. */
function base64(bytes: Uint8Array): string {
  const text = toBase64url(bytes).replace(/-/g, '+').replace(/_/g, '/');
  return text.padEnd(Math.ceil(text.length / 4) * 4, '=');
}

/** The `received-by` of our Via (RFC 9110 §7.6.3): the base URL's host, with its port where it has one. */
export function relayPseudonym(base: { readonly hostname: string; readonly port: string }): string {
  return base.port === '' ? base.hostname : `${base.hostname}:${base.port}`;
}

/** True where a request came through this very relay: one of its Via entries is ours. */
export function isOwnLoop(via: string | null, pseudonym: string): boolean {
  return (via ?? '').split(',').some((entry) => {
    const [, receivedBy] = entry.trim().split(/[ \t]+/);
    return receivedBy?.toLowerCase() === pseudonym.toLowerCase();
  });
}
