// Well-known files, robots, llms.txt and icon.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';

export function wellKnownRoutes(_deps: HttpDeps) {
  return new Elysia();
}
