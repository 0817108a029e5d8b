// The canary: a free target to test against, the one address of ours that the relay itself may call. It returns the
// size and hash of what arrived, and keeps and logs nothing.

import { Type } from '@sinclair/typebox';
import { ROUTES } from '#src/discovery/routes.ts';
import { toHex } from '#src/domain/encoding.ts';
import { FACTORS, SERVICE } from '#src/domain/limits.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { Closed, Count, Instant, OneOf } from '#src/domain/schema-parts.ts';
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
import { iso } from '#src/lib/iso.ts';

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
});

export function canaryRoutes(deps: ParseDeps & Settings<'rateLimitPerMinute'>): Endpoint[] {
  const { quota, clock, settings } = deps;
  const rates = [rateRule('canary', settings.rateLimitPerMinute * FACTORS.generousRate)];
  const echo = async (request: Request, method: 'GET' | 'POST') => {
    const context = contextOf(request);
    const rate = await limitRate(quota, rates, context);
    if (isRefused(rate)) return rate;
    const bytes = await readBody(request, clock);
    if (isRefused(bytes)) return bytes;
    return {
      ok: true,
      service: SERVICE.name,
      method,
      receivedAt: iso(clock.now()),
      requestId: context.id,
      bodyBytes: bytes.byteLength,
      bodySha256: toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', Uint8Array.from(bytes)))),
    } satisfies typeof CanaryEcho.static;
  };
  return [
    endpoint(ROUTES.canary, { answers, errors }, ({ request }) => echo(request, 'GET')),
    endpoint(ROUTES.canaryPost, { answers, errors: { ...errors, ...bodyErrors } }, ({ request }) =>
      echo(request, 'POST'),
    ),
  ];
}

const answers = { 200: ['What arrived.', CanaryEcho] } as const;
const { 408: late, 413: large, 429: limited } = BODY_ERRORS;
const errors = { 429: limited, 503: PART_UNAVAILABLE };
const bodyErrors = { 400: 'The body broke off.', 408: late, 413: large };
