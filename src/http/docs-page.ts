// The interface description as a page.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';

export function docsPageRoutes(_deps: HttpDeps) {
  return new Elysia();
}
