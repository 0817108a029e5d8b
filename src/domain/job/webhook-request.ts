// The webhook request: its schema, and its one normal form, which everything after the schema works on.
import { FormatRegistry, type Static, Type } from '@sinclair/typebox';
import { canonicalJson, type Json } from '#src/domain/canonical-json.ts';
import { Method, type Route } from '#src/domain/event-fields.ts';
import { LIMITS } from '#src/domain/limits.ts';
import type { Warning } from '#src/domain/refusal.ts';

const { retryAttempts: attempts, retryBackoffMs: backoffMs, timeoutMs } = LIMITS;

export const RetryOptions = Type.Object(
  {
    attempts: Type.Optional(
      Type.Integer({ minimum: attempts.min, maximum: attempts.max, default: attempts.default }),
    ),
    backoffMs: Type.Optional(
      Type.Integer({
        minimum: backoffMs.min,
        maximum: backoffMs.max,
        default: backoffMs.default,
        description: 'Milliseconds; base of the exponential backoff with full jitter.',
      }),
    ),
  },
  { additionalProperties: false },
);

// The parser that the target policy uses, so that an international host passes; Elysia's own pattern accepts ASCII only.
FormatRegistry.Set('uri', (text) => URL.parse(text) !== null);

export const WebhookRequest = Type.Object(
  {
    url: Type.String({
      format: 'uri',
      pattern: '^[hH][tT][tT][pP][sS]://',
      maxLength: LIMITS.urlLength.max,
      description: 'Absolute HTTPS URL to call.',
    }),
    method: Type.Optional(Type.Union(Method.anyOf, { default: 'POST' })),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
        description: `At most ${LIMITS.targetHeaders.max} headers: each name a token (RFC 9110), each value visible ASCII. Hop-by-hop and proxy headers are stripped.`,
      }),
    ),
    body: Type.Optional(
      Type.Unknown({
        description:
          'Any JSON. The target gets it as compact JSON, as JSON.stringify writes it: no blanks, names like 7 first and ascending, then the others in their order, 1.0 as 1. A text is sent in its quotes.',
      }),
    ),
    idempotencyKey: Type.Optional(
      Type.String({ minLength: LIMITS.idempotencyKeyLength.min, maxLength: LIMITS.idempotencyKeyLength.max }),
    ),
    retry: Type.Optional(RetryOptions),
    timeoutMs: Type.Optional(
      Type.Integer({ minimum: timeoutMs.min, maximum: timeoutMs.max, default: timeoutMs.default }),
    ),
  },
  { additionalProperties: false },
);
export type WebhookRequest = Static<typeof WebhookRequest>;

/** Defaults filled in, header names in lower case, values as strings. `body` undefined: none. */
export type NormalRequest = {
  readonly url: string;
  readonly method: Method;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json | undefined;
  readonly idempotencyKey: string | null;
  readonly retry: { readonly attempts: number; readonly backoffMs: number };
  readonly timeoutMs: number;
};

/** `href`: the parsed and normalised URL. Header names must be distinct in lower case (`judgeHeaders` saw to it). */
export function normaliseRequest(request: WebhookRequest, href: string): NormalRequest {
  const headers: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    headers[name.toLowerCase()] = String(value);
  }
  return {
    url: href,
    method: request.method ?? 'POST',
    headers,
    body: request.body as Json | undefined,
    idempotencyKey: request.idempotencyKey ?? null,
    retry: {
      attempts: request.retry?.attempts ?? attempts.default,
      backoffMs: request.retry?.backoffMs ?? backoffMs.default,
    },
    timeoutMs: request.timeoutMs ?? timeoutMs.default,
  };
}

/** Whether the target may read the body otherwise than it is sent: as JSON, whatever the headers say. */
export function contentTypeDiffers({ headers = {}, body }: BodyAndHeaders): boolean {
  const [, type = 'application/json'] =
    Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type') ?? [];
  return body !== undefined && !/^((application|text)\/|[^;]+\+)json\s*(;|$)/i.test(String(type));
}

export const BODY_IS_JSON: Warning = {
  code: 'body_is_json',
  message: 'The body is sent as JSON, a text in its quotes, although the header content-type says otherwise.',
};

/** Remarks on a body that the target may read otherwise than its headers say. */
export const bodyWarnings = (request: BodyAndHeaders): readonly Warning[] =>
  contentTypeDiffers(request) ? [BODY_IS_JSON] : [];

type BodyAndHeaders = { readonly headers?: WebhookRequest['headers']; readonly body?: unknown };

/** The text whose keyed hash is the request's fingerprint: every field that a repeat must share. */
export function fingerprintText(request: NormalRequest, route: Route, decisionId: string | null): string {
  const { body, ...rest } = request;
  return canonicalJson({ ...rest, ...(body === undefined ? {} : { body }), route, decisionId });
}
