// The canary: a free target to test against, the one address of ours that the relay itself may call. It returns what
// arrived in numbers and names, gives nothing back that was sent to it as a body, and keeps and logs nothing.
import { Type } from '@sinclair/typebox';
import { addressOf } from '#src/discovery/document.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { toHex } from '#src/domain/encoding.ts';
import { FACTORS, LIMITS, SERVICE } from '#src/domain/limits.ts';
import { Closed, Count, Instant, Link, Nullable, OneOf } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import {
  BODY_ERRORS,
  limitRate,
  type ParseDeps,
  rateRule,
  readBody,
} from '#src/http/request/parse-request.ts';
import { contextOf } from '#src/http/request/request-context.ts';

const CanaryEcho = Closed({
  ok: Type.Literal(true),
  service: Type.String(),
  method: OneOf('GET', 'POST'),
  receivedAt: Instant,
  requestId: Type.String(),
  bodyBytes: Count,
  bodySha256: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description: 'Of the bytes that arrived; hexadecimal.',
  }),
  contentType: Nullable(Type.String({ description: 'null: none, or none that is well-formed.' })),
  webhook: Nullable(
    Closed(
      {
        id: Type.String(),
        timestamp: Type.Integer({ description: 'Seconds since the Unix epoch.' }),
        signed: Type.Boolean(),
      },
      'Of Standard Webhooks, where webhook-id and webhook-timestamp came well-formed. signed: a signature came; it is not verified here.',
    ),
  ),
  links: Closed(
    { keys: Link, snippets: Link },
    'For a target that verifies webhook-signature: the public keys, and code in TypeScript and Python (group verification).',
  ),
});

export function canaryRoutes(deps: ParseDeps & Settings<'rateLimitPerMinute' | 'baseUrl'>): Endpoint[] {
  const { quota, clock, settings } = deps;
  const rates = [rateRule('canary', settings.rateLimitPerMinute * FACTORS.generousRate)];
  const limits = { maxBytes: LIMITS.requestBodyBytes.max, arrivalMs: LIMITS.requestBodyArrivalMs.max };
  const links = { keys: addressOf(settings, ROUTES.jwks), snippets: addressOf(settings, ROUTES.snippets) };
  const echo = async (request: Request, method: 'GET' | 'POST') => {
    const context = contextOf(request);
    const limited = await limitRate(quota, rates, context);
    if (limited !== null) return limited;
    const bytes = await readBody(request, clock, limits);
    if (!(bytes instanceof Uint8Array)) return bytes;
    return {
      ok: true,
      service: SERVICE.name,
      method,
      receivedAt: new Date(clock.now()).toISOString(),
      requestId: context.id,
      bodyBytes: bytes.byteLength,
      bodySha256: toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', Uint8Array.from(bytes)))),
      contentType: contentType(request.headers),
      webhook: webhook(request.headers),
      links,
    } satisfies typeof CanaryEcho.static;
  };
  return [
    endpoint(ROUTES.canary, { answers, errors }, ({ request }) => echo(request, 'GET')),
    endpoint(ROUTES.canaryPost, { answers, errors: { ...errors, ...bodyErrors } }, ({ request }) =>
      echo(request, 'POST'),
    ),
  ];
}

/** RFC 9110 §8.3.1. */
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:[ \t]*;[ -~]*)?$/;

function contentType(headers: Headers): string | null {
  const given = headers.get('content-type') ?? '';
  return given.length <= 200 && MEDIA_TYPE.test(given) ? given : null;
}

function webhook(headers: Headers): (typeof CanaryEcho.static)['webhook'] {
  const id = headers.get('webhook-id') ?? '';
  const timestamp = headers.get('webhook-timestamp') ?? '';
  if (!/^[\w.-]{1,128}$/.test(id) || !/^\d{1,12}$/.test(timestamp)) return null;
  return { id, timestamp: Number(timestamp), signed: headers.has('webhook-signature') };
}

const answers = { 200: ['What arrived.', CanaryEcho] } as const;
const { 408: late, 413: large, 429: limited } = BODY_ERRORS;
const errors = { 429: limited, 503: PART_UNAVAILABLE };
const bodyErrors = { 400: 'The body broke off.', 408: late, 413: large };
