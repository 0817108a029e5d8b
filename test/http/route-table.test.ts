// One table of routes: the served routes, the documented routes and the table are the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathTemplate, ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { clientOf } from '#test/support/http-client.ts';
import { appOf, fakeWorld } from '#test/support/http-deps.ts';

const table: readonly RouteFacts[] = Object.values(ROUTES);
const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path}`;

test('the routes that are served are exactly those of the table, each once', () => {
  const { routes } = appOf(fakeWorld());
  assert.deepEqual(routes.map(nameOf).sort(), table.map(nameOf).sort());
  assert.equal(new Set(table.map(nameOf)).size, table.length);
  assert.ok(table.length > 40, `${table.length}`);
});

test('the interface description has exactly the listed ones', async () => {
  const { paths } = await clientOf(fakeWorld()).document();
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const listed = table.filter((route) => route.listed);
  assert.deepEqual(
    described.sort(),
    listed.map(({ method, path }) => `${method} ${pathTemplate(path)}`).sort(),
  );
});
