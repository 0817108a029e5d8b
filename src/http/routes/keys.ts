// The public keys that receipts verify with, for ever: active and retired.
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import { unlisted } from '#src/http/openapi/operation.ts';
import { CACHE_KEYS, json } from '#src/http/response/json.ts';

export function keyRoutes(deps: HttpDeps) {
  return new Elysia().get(ROUTES.jwks.path, async () => json(200, await deps.jwks(), CACHE_KEYS), unlisted);
}
