// The request header Idempotency-Key: the key of a call that has none in its body.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { decided, fakeWorld, handoff, policyCheck, schedulePreview } from '#test/support/world/http-deps.ts';

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

// ── the free routes that judge a request before it is paid for ──────────────────────────────────────────

const page = 'https://a.example/orders';
const schedule = { type: 'once', runAt: '2999-01-01T00:00:00Z' };
const REQUESTS = [
  ['/api/policy/check', (key: object) => ({ url, ...key }), '/idempotencyKey'],
  ['/api/decide/webhook', (key: object) => ({ action: { url, ...key } }), '/action/idempotencyKey'],
  [
    '/api/schedules/preview',
    (key: object) => ({ webhook: { url, ...key }, schedule }),
    '/webhook/idempotencyKey',
  ],
  [
    '/api/handoff/browser',
    (key: object) => ({ targetUrl: page, actions: [{ type: 'navigate' }], ...key }),
    '/idempotencyKey',
  ],
] as const;

/** What the use case of a free route gets, route by route. */
function judgingWorld() {
  const keys: unknown[] = [];
  const world = fakeWorld({
    async checkPolicy({ request }) {
      keys.push(request.idempotencyKey);
      return policyCheck();
    },
    async decide({ action, hasKey }) {
      keys.push(hasKey && action.idempotencyKey === undefined ? 'beside the action' : action.idempotencyKey);
      return decided();
    },
    async previewSchedule({ webhook }) {
      keys.push(webhook.idempotencyKey);
      return schedulePreview();
    },
    async handOffBrowser({ idempotencyKey }) {
      keys.push(idempotencyKey);
      return handoff();
    },
  });
  return { client: clientOf(world), keys };
}

test('of a request that is judged before it is paid for, it counts as at its execution', async () => {
  const { client, keys } = judgingWorld();
  for (const [path, body] of REQUESTS) {
    const asked = [
      [{}, { 'idempotency-key': 'k' }],
      [{ idempotencyKey: 'k' }, { 'idempotency-key': '"k"' }],
      [{}, {}],
    ] as const;
    for (const [key, headers] of asked) {
      const answer = await client.post(path, body(key), headers);
      assert.equal(answer.status, 200, `${path} ${await answer.text()}`);
    }
    // Of a decision and its guided call the decision is the key: the action stays as it is.
    const first = path === '/api/decide/webhook' ? 'beside the action' : 'k';
    assert.deepEqual(keys.splice(0), [first, 'k', undefined], path);
  }
});

test('of a request that is judged before it is paid for, it is refused as at its execution', async () => {
  const { client, keys } = judgingWorld();
  for (const [path, body, place] of REQUESTS)
    for (const [header, key, where] of [
      ['k', { idempotencyKey: 'other' }, place],
      ['a'.repeat(161), {}, ''],
      ['kå', {}, ''],
    ] as const) {
      const answer = await errorOf(await client.post(path, body(key), { 'idempotency-key': header }));
      assert.deepEqual([answer.status, answer.code], [400, 'invalid_request'], `${path} ${header}`);
      assert.deepEqual(
        (answer.details as { path: string }[]).map(({ path: fault }) => fault),
        [where],
      );
    }
  assert.deepEqual(keys, []);
});

test('a browser may send it', async () => {
  const preflight = await clientOf(fakeWorld()).call(EXECUTE, { method: 'OPTIONS' });
  const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ') ?? [];
  assert.ok(allowed.includes('idempotency-key'));
});
