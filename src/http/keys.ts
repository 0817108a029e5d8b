// The public keys that receipts verify with, for ever: active and retired.
import { Elysia } from 'elysia';
import { CACHE_SHORTLY, json } from './answer.ts';
import type { HttpDeps } from './deps.ts';
import { unlisted } from './operation.ts';

export function keyRoutes(deps: HttpDeps) {
  return new Elysia().get(
    '/.well-known/jwks.json',
    async () => json(200, await deps.jwks(), CACHE_SHORTLY),
    unlisted,
  );
}
