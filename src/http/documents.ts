// The documents for agents, on the wire.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';

export function documentRoutes(_deps: HttpDeps) {
  return new Elysia();
}
