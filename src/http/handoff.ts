// The browser handoff on the wire.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';

export function handoffRoutes(_deps: HttpDeps) {
  return new Elysia();
}
