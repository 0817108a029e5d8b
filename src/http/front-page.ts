// The front page.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';

export function frontPageRoutes(_deps: HttpDeps) {
  return new Elysia();
}
