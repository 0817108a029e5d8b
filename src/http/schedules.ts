// The schedule preview on the wire.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';

export function scheduleRoutes(_deps: HttpDeps) {
  return new Elysia();
}
