// The MCP server on the wire.
import { Elysia } from 'elysia';
import type { HttpDeps } from './deps.ts';
import type { Routed } from './front-door.ts';

/** `route`: the HTTP room's own routes, so that a tool does what its route does. */
export function mcpRoutes(_deps: HttpDeps, _route: Routed) {
  return new Elysia();
}
