// The headers that the target gets: the caller's, and those by which it can identify and verify this service.
import { concatBytes, toBase64, utf8 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { HeaderPair, JudgedHeaders } from './headers.ts';

export type CallFacts = {
  readonly jobId: string;
  /** PUBLIC_BASE_URL. */
  readonly baseUrl: string;
  /** This service's name in Via: see `relayPseudonym`. */
  readonly pseudonym: string;
  /** Unix time of this attempt, whole seconds. */
  readonly timestampSeconds: number;
  /** Exact bytes; null: no body. */
  readonly body: Uint8Array | null;
};

/** 64-byte Ed25519 signature with the relay's published key. */
export type SignBytes = (message: Uint8Array) => Promise<Uint8Array>;

/** All headers of one attempt but Host, Content-Length and Connection; names in lower case, each once. */
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
    ['webhook-signature', `v1a,${toBase64(await sign(signed))}`],
  ];
}

/** The `received-by` of the Via header (RFC 9110 §7.6.3): the base URL's host, with its port if it has one. */
export function relayPseudonym(base: { readonly hostname: string; readonly port: string }): string {
  return base.port === '' ? base.hostname : `${base.hostname}:${base.port}`;
}

/** Whether the request came through this relay: one of its Via entries names it. */
export function isOwnLoop(via: string | null, pseudonym: string): boolean {
  return (via ?? '').split(',').some((entry) => {
    const [, receivedBy] = entry.trim().split(/[ \t]+/);
    return receivedBy?.toLowerCase() === pseudonym.toLowerCase();
  });
}
