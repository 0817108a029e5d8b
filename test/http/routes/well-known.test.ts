import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type DiscoveryResourcesResponse,
  sanitizeResourceServiceMetadata,
  validateDiscoveryExtension,
} from '@x402/extensions/bazaar';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { ROUTES, SCHEDULE_ROUTES } from '#src/discovery/routes.ts';
import type { SchedulesDeps } from '#src/http/routes/schedules.ts';
import type { Clock } from '#src/ports/clock.ts';
import { lab, PAY_TO } from '#test/adapters/payments/lab.ts';
import { type Client, clientOf } from '#test/support/process/http-client.ts';
import { BASE, fakeWorld } from '#test/support/world/http-deps.ts';

const demo = () => clientOf(fakeWorld());
const paid = async (baseUrl: string = BASE, clock: Clock = systemClock()) =>
  clientOf(fakeWorld({ payments: (await lab()).protocol, settings: { mode: 'x402', baseUrl }, clock }));

/** A deployment that sells schedules too. */
const scheduling = async () =>
  clientOf(
    fakeWorld({
      payments: (await lab()).protocol,
      settings: { mode: 'x402', baseUrl: BASE, schedules: { horizonDays: 90 } },
      clock: systemClock(),
      // None of them is called before a body fits the schema.
      schedules: {} as SchedulesDeps,
    }),
  );

const textOf = async (client: Client, path: string) => (await client.call(path)).text();
const bodyOf = async (client: Client, path: string) => JSON.parse(await textOf(client, path));

test('llms.txt is in the form of llmstxt.org: a title, a summary, sections of links with notes', async () => {
  const [title, blank, summary, ...rest] = (await textOf(await paid(), ROUTES.llms.path)).split('\n');
  assert.deepEqual([title, blank], ['# webhook-relay', '']);
  assert.match(summary ?? '', /^> .*Payment is enforced: .*0\.003 USD.*Base \(eip155:8453\)/);
  const sections = rest.join('\n').split(/^## /m).slice(1);
  assert.deepEqual(
    sections.map((section) => section.split('\n')[0]),
    ['Documents'],
  );
  for (const section of sections) {
    const [, ...lines] = section.split('\n').filter((line) => line !== '');
    for (const line of lines) assert.match(line, /^- \[[^\]]+\]\(https:\/\/relay\.example\/[^)]*\): .+$/);
  }
});

test('llms.txt names the call of every route that it takes to buy, with or without a decision', async () => {
  const text = await textOf(await paid(), ROUTES.llms.path);
  for (const { method, path } of [ROUTES.decide, ROUTES.executeGuided, ROUTES.execute, ROUTES.canaryPost])
    assert.ok(text.includes(`${method} ${path}`), path);
});

test('llms.txt says what is charged now', async () => {
  const text = await textOf(await paid(), ROUTES.llms.path);
  assert.match(text, /both are charged, once/);
  const free = await textOf(demo(), ROUTES.llms.path);
  assert.match(free, /no one is charged now/);
  assert.doesNotMatch(free, /answers 402|are charged, once/);
});

test('robots.txt keeps nothing from anyone (RFC 9309) and names the guide', async () => {
  const text = await textOf(demo(), ROUTES.robots.path);
  const rules = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  assert.deepEqual(rules, ['User-agent: *', 'Allow: /']);
  assert.ok(text.includes(`${BASE}/llms.txt`));
});

test('the x402 manifest lists what a 402 asks to be paid for; in demo mode nothing is for sale', async () => {
  const client = await paid();
  const { updated, description, ...manifest } = await bodyOf(client, ROUTES.x402.path);
  assert.deepEqual(manifest, {
    x402Version: 2,
    kind: 'resource-server',
    name: 'webhook-relay',
    resources: await Promise.all(
      [ROUTES.execute.path, ROUTES.executeGuided.path].map(
        async (path) => (await asked(client, path)).resource.url,
      ),
    ),
    docs: `${BASE}/docs`,
  });
  assert.equal(new Date(updated).toISOString(), updated);
  assert.match(description, /Payment is enforced/);
  const free = await bodyOf(demo(), ROUTES.x402.path);
  assert.deepEqual(free.resources, []);
  assert.match(free.description, /Demo mode/);
});

test('where schedules are on, both lists of what is sold and the agent manifest have them, with the terms of their 402', async () => {
  const client = await scheduling();
  const { path } = SCHEDULE_ROUTES.createSchedule;
  const { resource, accepts } = await asked(client, path);
  const { resources } = await bodyOf(client, ROUTES.x402.path);
  assert.equal(resources.at(-1), resource.url);
  assert.equal(resources.length, 3);
  const { items } = await bodyOf(client, ROUTES.x402Items.path);
  const item = items.at(-1);
  assert.deepEqual([item.resource, item.accepts], [resource.url, accepts]);
  assert.deepEqual(validateDiscoveryExtension(item.extensions.bazaar), { valid: true });
  const manifest = await bodyOf(client, ROUTES.agent.path);
  assert.ok(manifest.actions.some((action: { path: string }) => action.path === path));
});

test('x402.json is a page of a facilitator’s resources, each with the requirements of its own 402', async () => {
  const client = await paid();
  const page: DiscoveryResourcesResponse & { lastUpdated: string } = await bodyOf(
    client,
    ROUTES.x402Items.path,
  );
  assert.deepEqual(page.pagination, { limit: 2, offset: 0, total: 2 });
  assert.equal(page.x402Version, 2);
  for (const item of page.items) {
    const { resource, accepts } = await asked(client, new URL(item.resource).pathname);
    assert.deepEqual([item.resource, item.accepts], [resource.url, accepts]);
    assert.equal(item.accepts[0]?.payTo, PAY_TO);
    assert.deepEqual(validateDiscoveryExtension(item.extensions?.bazaar as never), { valid: true });
    assert.deepEqual([item.type, item.x402Version, item.lastUpdated], ['http', 2, page.lastUpdated]);
    const { serviceName = '', iconUrl = '' } = item;
    const kept = sanitizeResourceServiceMetadata({ url: item.resource, serviceName, iconUrl });
    assert.deepEqual([kept.serviceName, kept.iconUrl], [serviceName, iconUrl]);
  }
  const free = await bodyOf(demo(), ROUTES.x402Items.path);
  assert.deepEqual([free.items, free.pagination.total], [[], 0]);
});

async function asked(client: Client, path: string) {
  const { headers } = await client.call(path, { method: 'POST' });
  return JSON.parse(atob(headers.get('payment-required') ?? ''));
}

test('the agent manifest lists the protocols, and is no A2A agent card', async () => {
  const manifest = await bodyOf(await paid(), ROUTES.agent.path);
  assert.deepEqual(manifest.protocols, ['http', 'mcp', 'x402']);
  assert.equal(manifest.interfaces.mcp.endpoint, `${BASE}/mcp`);
  assert.deepEqual(
    [manifest.payment.required, manifest.payment.price, manifest.payment.network],
    [true, '$0.003', 'eip155:8453'],
  );
  // What every version of an agent card must have.
  for (const name of ['skills', 'capabilities', 'defaultInputModes', 'defaultOutputModes'])
    assert.equal(name in manifest, false, name);
});

test('the API catalog is a link set of RFC 9727 in which both interfaces are described', async () => {
  const response = await demo().call(ROUTES.apiCatalog.path);
  assert.equal(
    response.headers.get('content-type'),
    'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
  );
  const { linkset } = JSON.parse(await response.text());
  const [catalog, ...interfaces] = linkset;
  assert.equal(catalog.anchor, `${BASE}/.well-known/api-catalog`);
  assert.deepEqual(
    catalog.item.map(({ href }: { href: string }) => href),
    interfaces.map(({ anchor }: { anchor: string }) => anchor),
  );
  assert.deepEqual(interfaces[0]['service-desc'], [
    { href: `${BASE}/openapi.json`, type: 'application/json' },
  ]);
  assert.deepEqual(interfaces[1]['service-desc'], [{ href: `${BASE}/api/mcp`, type: 'application/json' }]);
  const head = await demo().call(ROUTES.apiCatalog.path, { method: 'HEAD' });
  assert.match(
    head.headers.get('link') ?? '',
    new RegExp(`<${BASE}/.well-known/api-catalog>; rel="api-catalog"`),
  );
});

test('the icon is a drawing and, at /favicon.ico, a picture of 16 by 16 that fills its file', async () => {
  const client = demo();
  const drawing = await client.call(ROUTES.favicon.path);
  assert.equal(drawing.headers.get('content-type'), 'image/svg+xml');
  assert.match(await drawing.text(), /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox=/);
  const picture = await client.call(ROUTES.faviconIco.path);
  assert.equal(picture.headers.get('content-type'), 'image/vnd.microsoft.icon');
  const file = new DataView(await picture.arrayBuffer());
  assert.deepEqual([file.getUint16(0, true), file.getUint16(2, true), file.getUint16(4, true)], [0, 1, 1]);
  assert.deepEqual([file.getUint8(6), file.getUint8(7)], [16, 16]);
  const [size, offset] = [file.getUint32(14, true), file.getUint32(18, true)];
  assert.equal(size + offset, file.byteLength);
  // The header, two colours, and 16 rows of 4 bytes for the picture and for its mask.
  assert.equal(size, 40 + 2 * 4 + 2 * 16 * 4);
  assert.deepEqual([file.getUint32(offset, true), file.getUint16(offset + 14, true)], [40, 1]);
});

test('what is the same document under two addresses is the same, byte for byte', async () => {
  const client = await paid();
  for (const [one, other] of [
    [ROUTES.discovery, ROUTES.discoveryMetadata],
    [ROUTES.mcpManifest, ROUTES.mcpWellKnown],
  ] as const)
    assert.equal(await textOf(client, one.path), await textOf(client, other.path));
});

test('each may be kept five minutes, has an entity tag that answers 304, and links to the others', async () => {
  const client = await paid();
  const clock = systemClock();
  // Another process of the deployment, which made its documents a day later.
  const twin = await paid(BASE, { ...clock, now: () => clock.now() + 86_400_000 });
  for (const { path } of [
    ROUTES.index,
    ROUTES.discovery,
    ROUTES.discoveryMetadata,
    ROUTES.mcpManifest,
    ROUTES.mcpWellKnown,
    ROUTES.x402,
    ROUTES.x402Items,
    ROUTES.agent,
    ROUTES.apiCatalog,
    ROUTES.robots,
    ROUTES.favicon,
    ROUTES.llms,
    ROUTES.openapi,
  ]) {
    const first = await client.call(path);
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^W\/"[0-9a-f]{32}"$/, path);
    assert.equal(first.headers.get('cache-control'), 'public, max-age=300', path);
    assert.match(first.headers.get('link') ?? '', /rel="service-desc"/, path);
    const again = await client.call(path, { headers: { 'if-none-match': etag } });
    assert.deepEqual([again.status, await again.text()], [304, ''], path);
    assert.equal((await twin.call(path)).headers.get('etag'), etag, path);
  }
});
