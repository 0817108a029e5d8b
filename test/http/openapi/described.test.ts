// The parts of the interface description beside its operations; it is complete and small enough for an agent.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lab } from '#test/adapters/payments/lab.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { BASE, fakeWorld } from '#test/support/world/http-deps.ts';

type Operation = { readonly operationId: string; readonly tags: readonly string[] };
type Description = {
  readonly info: {
    readonly title: string;
    readonly contact: { readonly url: string };
    readonly 'x-guidance': string;
  };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly externalDocs: { readonly url: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};

async function description(isPaid = false): Promise<Description> {
  const paid = isPaid ? { payments: (await lab()).protocol, settings: { mode: 'x402' } as const } : {};
  return (await clientOf(fakeWorld(paid)).get('/openapi.json')).body as Description;
}

const operationsOf = ({ paths }: Description) =>
  Object.values(paths).flatMap((methods) => Object.values(methods));

test('the guidance is at most 4000 characters and names when, price, order of calls, repeats and limits', async () => {
  for (const isPaid of [true, false]) {
    const guidance = (await description(isPaid)).info['x-guidance'];
    assert.ok(guidance.length <= 4000, `${guidance.length}`);
    for (const said of [
      'Use it when:',
      'Not when:',
      '0.003',
      'eip155:8453',
      isPaid ? '503 `payment_unconfirmed`' : 'Without a key it is a new call',
      'Verification:',
    ])
      assert.ok(guidance.includes(said), said);
    const steps = ['/api/decide/webhook', '/api/execute/guided-webhook', 'links.verifyReceipt'];
    const places = steps.map((step) => guidance.indexOf(step));
    assert.ok(places.every((place) => place > 0));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
    assert.equal(guidance.includes('no one is charged'), !isPaid);
  }
});

test('who answers for it, where it is served and where people read on stand on PUBLIC_BASE_URL', async () => {
  const { info, servers, externalDocs } = await description();
  assert.deepEqual(
    [info.contact.url, servers.map(({ url }) => url), externalDocs.url],
    [`${BASE}/`, [BASE], `${BASE}/docs`],
  );
});

test('every tag in use is described, and every described one is in use', async () => {
  const document = await description();
  const used = new Set(operationsOf(document).flatMap(({ tags }) => tags));
  assert.deepEqual([...used].sort(), document.tags.map(({ name }) => name).sort());
  for (const { name, description } of document.tags) assert.ok(description.length > 20, name);
});

test('an operation has the id, method and path by which the index lists it, and is listed once', async () => {
  const document = await description();
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`,
    ),
  );
  const { body } = await clientOf(fakeWorld()).get('/api');
  const { operations } = body as {
    readonly operations: readonly { readonly id: string; readonly method: string; readonly path: string }[];
  };
  const listed = operations.map(({ id, method, path }) => `${id} ${method} ${path}`);
  assert.deepEqual(listed.sort(), described.sort());
  assert.ok(new Set(operations.map(({ id }) => id)).size === operations.length && listed.length > 20);
});
