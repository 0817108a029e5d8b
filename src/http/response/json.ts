// Answers as bytes: JSON, and the headers that every answer has.

/** CORS (fetch standard): any origin, never with credentials. */
export const ON_EVERY_ANSWER = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'payment-required, payment-response, x-payment-response, x-request-id, preference-applied, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset, ratelimit-policy',
  'x-content-type-options': 'nosniff',
} as const;

export const CACHE_SHORTLY = { 'cache-control': 'public, max-age=300' } as const;

export function json(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

export const jsonTextAnswer = (text: string): Response =>
  new Response(text, { headers: { 'content-type': 'application/json' } });
