// The public keys that receipts verify with, for ever: active and retired.
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import { CACHE_KEYS, json } from './answer.ts';
import type { HttpDeps } from './deps.ts';
import { unlisted } from './operation.ts';

export function keyRoutes(deps: HttpDeps) {
  return new Elysia().get(ROUTES.jwks.path, async () => json(200, await deps.jwks(), CACHE_KEYS), unlisted);
}
