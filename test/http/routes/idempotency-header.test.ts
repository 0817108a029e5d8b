// The request header Idempotency-Key: the key of a call that has none in its body.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientOf, errorOf } from '#test/support/http-client.ts';
import { decided, fakeWorld } from '#test/support/http-deps.ts';

const EXECUTE = '/api/execute/webhook';
const GUIDED = '/api/execute/guided-webhook';
const url = 'https://a.example/hook';

/** The key that the use case gets. */
async function keyOf(header: string, body: Record<string, unknown> = {}): Promise<unknown> {
  const world = fakeWorld();
  const answer = await clientOf(world).post(EXECUTE, { url, ...body }, { 'idempotency-key': header });
  assert.equal(answer.status, 200, await answer.text());
  return world.executed[0]?.request.idempotencyKey;
}

test('it is the key of a call without one, as text or as the string of a structured field', async () => {
  assert.equal(await keyOf('order-1'), 'order-1');
  assert.equal(await keyOf('"order-1"'), 'order-1');
  assert.equal(await keyOf('"a \\"b\\" \\\\ c"'), 'a "b" \\ c');
  assert.equal(await keyOf('a'.repeat(160)), 'a'.repeat(160));
});

test('an empty one is none; with the same key in the body it changes nothing', async () => {
  assert.equal(await keyOf(''), undefined);
  assert.equal(await keyOf('', { idempotencyKey: 'k' }), 'k');
  assert.equal(await keyOf('k', { idempotencyKey: 'k' }), 'k');
});

test('invalid_request: another key than that of the body, one that is too long, one that is not ASCII', async () => {
  const world = fakeWorld();
  const client = clientOf(world);
  for (const [header, body] of [
    ['k', { url, idempotencyKey: 'other' }],
    ['a'.repeat(161), { url }],
    ['""', { url }],
    ['kå', { url }],
  ] as const) {
    const { status, code, details } = await errorOf(
      await client.post(EXECUTE, body, { 'idempotency-key': header }),
    );
    assert.deepEqual([status, code], [400, 'invalid_request'], header);
    assert.match(JSON.stringify(details), /header Idempotency-Key/);
  }
  assert.deepEqual(world.executed, []);
});

test('of a guided call the decision is the key: the action stays as it was decided, and another key than its own is refused', async () => {
  const { decisionId } = decided();
  const world = fakeWorld();
  const client = clientOf(world);
  for (const action of [{ url }, { url, idempotencyKey: 'k' }]) {
    const answer = await client.post(GUIDED, { decisionId, action }, { 'idempotency-key': 'k' });
    assert.equal(answer.status, 200);
    assert.deepEqual(world.executedGuided.at(-1)?.action, action);
  }
  const action = { url, idempotencyKey: 'other' };
  const refused = await errorOf(
    await client.post(GUIDED, { decisionId, action }, { 'idempotency-key': 'k' }),
  );
  assert.deepEqual([refused.status, refused.code], [400, 'invalid_request']);
});

test('a browser may send it', async () => {
  const preflight = await clientOf(fakeWorld()).call(EXECUTE, { method: 'OPTIONS' });
  const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ') ?? [];
  assert.ok(allowed.includes('idempotency-key'));
});
