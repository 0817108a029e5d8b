// The documents that list the others, against the documents that they list.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '#src/discovery/routes.ts';
import { lab } from '#test/adapters/payments/lab.ts';
import { type Client, clientOf } from '#test/support/process/http-client.ts';
import { BASE, fakeWorld } from '#test/support/world/http-deps.ts';

const demo = () => clientOf(fakeWorld());
const paid = async () =>
  clientOf(fakeWorld({ payments: (await lab()).protocol, settings: { mode: 'x402' } }));
const bodyOf = async (client: Client, path: string) => JSON.parse(await (await client.call(path)).text());

type Listed = {
  readonly id: string;
  readonly address: string;
  readonly mediaType: string;
  readonly purpose: string;
};

test('every listed document answers with the media type it is listed with', async () => {
  const client = await paid();
  const { documents, wellKnown, pages } = await bodyOf(client, ROUTES.discovery.path);
  const all: readonly Listed[] = [...documents, ...wellKnown, ...pages];
  for (const { id, address, mediaType, purpose } of all) {
    assert.ok(address.startsWith(BASE) && purpose.length > 3, id);
    const { status, headers } = await client.call(address.slice(BASE.length));
    assert.deepEqual([status, headers.get('content-type')], [200, mediaType], id);
  }
  assert.ok(all.length > 22, `${all.length}`);
  assert.equal(new Set(all.map(({ address }) => address)).size, all.length);
});

test('an address that takes parameters is listed as a template (RFC 6570)', async () => {
  const { transparencyLog } = await bodyOf(demo(), ROUTES.discovery.path);
  assert.deepEqual(
    transparencyLog.map(({ address }: Listed) => address.slice(BASE.length)),
    [
      '/log/checkpoint',
      '/log/key',
      '/log/tile/{+path}',
      '/log/proof/{receiptId}',
      '/log/consistency{?from,to}',
    ],
  );
});

test('every document, well-known file and page of the route table is listed, but those that are the same', async () => {
  const { documents, wellKnown, pages } = await bodyOf(demo(), ROUTES.discovery.path);
  const listed = new Set([...documents, ...wellKnown, ...pages].map(({ address }: Listed) => address));
  const missing = Object.values(ROUTES)
    .filter(({ path, tag }) => tag === 'discovery' || path.startsWith('/.well-known/'))
    .map(({ path }) => path)
    .filter((path) => !listed.has(BASE + path));
  assert.deepEqual(missing, [ROUTES.discoveryMetadata.path]);
  assert.deepEqual(
    pages.map(({ address }: Listed) => address.slice(BASE.length)),
    ['/', '/status', '/docs', '/verify'],
  );
});

test('the index prices the paid operations alone, as configured, and says whether payment is enforced', async () => {
  const offer = { scheme: 'exact', network: 'eip155:84532', price: '$0.01' };
  const { operations, payment } = await bodyOf(
    clientOf(fakeWorld({ settings: { offer } })),
    ROUTES.index.path,
  );
  const priced = operations.filter(({ price }: { price?: string }) => price !== undefined);
  assert.deepEqual(
    priced.map(({ path, paid, price }: Record<string, unknown>) => [path, paid, price]),
    [
      [ROUTES.execute.path, true, '$0.01'],
      [ROUTES.executeGuided.path, true, '$0.01'],
    ],
  );
  assert.deepEqual(payment, { required: false, ...offer, networkName: 'Base Sepolia' });
  const enforced = await bodyOf(await paid(), ROUTES.index.path);
  assert.equal(enforced.payment.required, true);
});

test('the MCP manifest lists the server’s tools, and the fields of a message that carry a payment', async () => {
  const client = await paid();
  const manifest = await bodyOf(client, ROUTES.mcpManifest.path);
  assert.equal(manifest.endpoint, `${BASE}${ROUTES.mcp.path}`);
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const accept = { accept: 'application/json, text/event-stream' };
  const answer = await client.post(ROUTES.mcp.path, message, accept);
  const { result } = (await answer.json()) as { result: { tools: unknown } };
  const names = (tools: unknown) =>
    (tools as { name: string; title: string }[]).map(({ name, title }) => [name, title]);
  assert.deepEqual(names(manifest.tools), names(result.tools));
  const { requestMeta, responseMeta } = manifest.payment;
  assert.deepEqual([requestMeta, responseMeta], ['x402/payment', 'x402/payment-response']);
});
