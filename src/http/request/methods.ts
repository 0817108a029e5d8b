// Methods that a path does not serve (405 + Allow), OPTIONS, and what browsers elsewhere may see (CORS, fetch standard).
import { Elysia } from 'elysia';
import { refused } from '#src/domain/refusal.ts';
import { unlisted } from '#src/http/openapi/operation.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';

export type RouteMethods = readonly { readonly method: string; readonly path: string }[];

/** HEAD is answered by GET's route; see front-door.ts. */
export function methodRoutes(routes: RouteMethods) {
  const app = new Elysia();
  for (const [path, methods] of methodsByPath(routes)) {
    const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
    app.options(path, () => preflight(allow), unlisted);
    app.all(path, () => wrongMethod(allow), { parse: 'none', ...unlisted });
  }
  return app;
}

function methodsByPath(routes: RouteMethods): Map<string, string[]> {
  const byPath = new Map<string, string[]>();
  for (const { method, path } of routes) byPath.set(path, [...(byPath.get(path) ?? []), method]);
  return byPath;
}

function wrongMethod(allow: string): Response {
  const response = refusalAnswer(refused('method_not_allowed', `This path answers ${allow}.`));
  response.headers.set('allow', allow);
  return response;
}

function preflight(allow: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      allow,
      'access-control-allow-methods': allow,
      // The last: x402 clients send it with a request, where it means nothing but has to be allowed.
      'access-control-allow-headers':
        'content-type, accept, mcp-protocol-version, x-request-id, payment-signature, x-payment, access-control-expose-headers',
      'access-control-max-age': '7200',
    },
  });
}

/** On every answer: any origin, never with credentials. */
export const CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'payment-required, payment-response, x-payment-response, x-request-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset, ratelimit-policy',
} as const;
