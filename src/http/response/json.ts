// Answers as bytes: JSON, and the headers that say how long one may be kept.

/** Changes only with a release. */
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
