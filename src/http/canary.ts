// The canary: a free target to test against.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';

export function canaryRoutes(_deps: HttpDeps) {
  return new Elysia();
}
