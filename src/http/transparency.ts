// The receipt log, for everyone: checkpoint, key, tiles and proofs (C2SP tlog-tiles, tlog-checkpoint, tlog-proof).
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import type { HttpDeps } from './deps.ts';
import { routeNotFound } from './errors.ts';
import { unlisted } from './operation.ts';

export function transparencyRoutes(_deps: HttpDeps) {
  return new Elysia()
    .get(ROUTES.logCheckpoint.path, () => routeNotFound(), unlisted)
    .get(ROUTES.logKey.path, () => routeNotFound(), unlisted)
    .get(ROUTES.logTile.path, () => routeNotFound(), unlisted)
    .get(ROUTES.logProof.path, () => routeNotFound(), unlisted)
    .get(ROUTES.logConsistency.path, () => routeNotFound(), unlisted);
}
