// 0 invalid examples: every request that a document shows is taken by the route it is shown for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '#src/discovery/routes.ts';
import { lab } from '#test/adapters/payments/lab.ts';
import { clientOf, type OpenApi } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

type Example = { readonly from: string; readonly path: string; readonly body: unknown };
type Members = Readonly<Record<string, unknown>>;

/** As MCP asks for it; no other route minds. */
const ACCEPT = { accept: 'application/json, text/event-stream' };

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** By the member's name, the route it is a request of; null: it is no request. */
const CLAIMS: Readonly<Record<string, ((document: Members, holder: Members) => string) | null>> = {
  exampleRequest: (_, { paidRoute }) => String(paidRoute),
  minimalRequest: () => ROUTES.execute.path,
  request: ({ endpoint }) => String(isObject(endpoint) && endpoint.path),
  // In these the requests are; an answer is the other one.
  examples: null,
  example: null,
};

/** Whatever has a name that sounds like a request must be one of the claims. */
function examplesIn(from: string, document: Members, holder: unknown = document): Example[] {
  if (Array.isArray(holder)) return holder.flatMap((one) => examplesIn(from, document, one));
  if (!isObject(holder)) return [];
  return Object.entries(holder).flatMap(([name, member]) => {
    if (!/example|request$/i.test(name) || typeof member !== 'object')
      return examplesIn(from, document, member);
    const claim = CLAIMS[name];
    assert.notEqual(claim, undefined, `${from}: ${name} is not known here`);
    if (!claim) return examplesIn(from, document, member);
    return [{ from: `${from} ${name}`, path: claim(document, holder), body: member }];
  });
}

/** As the interface description shows them: one for every operation that takes a body. */
function described({ paths }: OpenApi): Example[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods).flatMap(({ operationId, requestBody }) => {
      const content = requestBody?.content['application/json'];
      if (content === undefined) return [];
      assert.ok('example' in content, `${operationId} has no example`);
      return [{ from: `${ROUTES.openapi.path} ${operationId}`, path, body: content.example }];
    }),
  );
}

/** As catalogues of paid resources show them. */
function catalogued(document: Members): Example[] {
  assert.ok(Array.isArray(document.items));
  return document.items.map(({ resource, extensions }) => ({
    from: `${ROUTES.x402Items.path} ${resource}`,
    path: new URL(resource).pathname,
    body: extensions.bazaar.info.input.body,
  }));
}

test('every request in every document is taken by its route', async () => {
  const paid = clientOf(fakeWorld({ payments: (await lab()).protocol, settings: { mode: 'x402' } }));
  const read = async (path: string) => {
    const { status, body } = await paid.get(path);
    assert.equal(status, 200, path);
    assert.ok(isObject(body), path);
    return body;
  };
  const routes = [
    ROUTES.index,
    ROUTES.discovery,
    ROUTES.catalog,
    ROUTES.quickstart,
    ROUTES.snippets,
    ROUTES.pricing,
    ROUTES.capabilities,
    ROUTES.mcpManifest,
    ROUTES.handoffCapabilities,
    ROUTES.scheduleCapabilities,
    ROUTES.secretsPolicy,
    ROUTES.agent,
    ROUTES.x402,
  ];
  const found = await Promise.all(routes.map(async ({ path }) => examplesIn(path, await read(path))));
  const examples = [
    ...found.flat(),
    ...described(await paid.document()),
    ...catalogued(await read(ROUTES.x402Items.path)),
  ];
  assert.ok(examples.length >= 20, `${examples.length}`);

  const client = clientOf(fakeWorld());
  for (const { from, path, body } of examples) {
    const response = await client.post(path, body, ACCEPT);
    assert.equal(response.status, 200, `${from}: ${await response.text()}`);
    // Whatever the route takes, it does not take this: so it did look.
    const spoilt = { ...(isObject(body) ? body : {}), unheardOf: true };
    assert.equal((await client.post(path, spoilt, ACCEPT)).status, 400, from);
  }
});
