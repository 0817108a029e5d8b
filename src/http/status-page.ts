// The status page.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';

export function statusPageRoutes(_deps: HttpDeps) {
  return new Elysia();
}
