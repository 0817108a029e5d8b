// The served routes and the table of routes are the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { appOf, fakeWorld } from '#test/support/world/http-deps.ts';

const table: readonly RouteFacts[] = Object.values(ROUTES);
const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path}`;

test('the routes that are served are exactly those of the table, each once', () => {
  const { routes } = appOf(fakeWorld());
  assert.deepEqual(routes.map(nameOf).sort(), table.map(nameOf).sort());
  assert.equal(new Set(table.map(nameOf)).size, table.length);
  assert.ok(table.length > 40, `${table.length}`);
});
