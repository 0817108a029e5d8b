// The browser handoff over HTTP: strict about what comes in, and what goes out fits its description.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HandoffRequest } from '#src/domain/planning/handoff.ts';
import { isRefused, refused } from '#src/domain/refusal.ts';
import { handOffBrowser } from '#src/usecases/planning/free-plans.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { world } from '#test/support/world/fakes-world.ts';
import { BASE, countingQuota, fakeWorld, HANDOFF, handoff } from '#test/support/world/http-deps.ts';

const PATH = '/api/handoff/browser';
const TASK = { targetUrl: 'https://a.example/shop', actions: [{ type: 'navigate' }] };

/** The room before the real use case, whose target is looked up by a fake. */
function realWorld() {
  const { deps } = world();
  return fakeWorld({ handOffBrowser: (request) => handOffBrowser({ ...deps, payer: null }, request) });
}

type Answer = {
  readonly ok: boolean;
  readonly allowed: boolean;
  readonly handoff: { readonly id: string; readonly actions: readonly unknown[] } | null;
  readonly error?: { readonly code: string };
  readonly warnings: readonly { readonly code: string }[];
  readonly policy: unknown;
  readonly next: unknown;
};

test('a package is answered whole, with the policy in force and absolute links', async () => {
  const asked: HandoffRequest[] = [];
  const client = clientOf(
    fakeWorld({
      async handOffBrowser(request) {
        asked.push(request);
        return handoff();
      },
    }),
  );
  const sent = { ...TASK, returnUrl: 'https://b.example/', idempotencyKey: 'k' };
  const response = await client.post(PATH, sent);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.deepEqual(asked, [sent]);
  const { verdict, warnings } = handoff();
  assert.ok(!isRefused(verdict));
  assert.deepEqual(await response.json(), {
    ok: true,
    allowed: true,
    handoff: verdict.handoff,
    policy: {
      preset: 'open',
      mode: 'open-public-https',
      quota: null,
      rateLimit: { windowMs: 60_000, maxRequests: 60 },
    },
    warnings,
    next: {
      capabilities: `${BASE}/api/handoff/capabilities`,
      secretsPolicy: `${BASE}/api/secrets/policy`,
      decide: `${BASE}/api/decide/webhook`,
    },
  });
  assert.equal(verdict.handoff.id, HANDOFF);
});

test('a refused target is 200, allowed false, with the error and no package', async () => {
  const response = await clientOf(realWorld()).post(PATH, { ...TASK, targetUrl: 'https://10.0.0.1/' });
  const body = (await response.json()) as Answer;
  assert.deepEqual(
    [response.status, body.ok, body.allowed, body.handoff, body.error?.code],
    [200, false, false, null, 'unsafe_target'],
  );
});

test('invalid_request: anything wrong at the top', async () => {
  const client = clientOf(realWorld());
  for (const [body, path] of [
    [{ ...TASK, targetUrl: undefined }, '/targetUrl'],
    [{ ...TASK, targetUrl: 'http://a.example/' }, '/targetUrl'],
    [{ ...TASK, targetUrl: `https://a.example/${'x'.repeat(4096)}` }, '/targetUrl'],
    [{ ...TASK, targetUrl: 5 }, '/targetUrl'],
    [{ ...TASK, url: 'https://a.example/' }, '/url'],
    [{ ...TASK, returnUrl: 'http://a.example/' }, '/returnUrl'],
    [{ ...TASK, returnUrl: null }, '/returnUrl'],
    [{ ...TASK, idempotencyKey: '' }, '/idempotencyKey'],
    [{ ...TASK, idempotencyKey: 'k'.repeat(161) }, '/idempotencyKey'],
    [[], ''],
    [null, ''],
    // What is wrong at the top comes before what is wrong inside.
    [{ ...TASK, more: 1, actions: [] }, '/more'],
  ] as const) {
    const { status, code, details } = await errorOf(await client.post(PATH, body));
    const paths = (details as { path: string }[]).map((fault) => fault.path);
    assert.deepEqual(
      [status, code, paths],
      [400, 'invalid_request', [path]],
      JSON.stringify(body)?.slice(0, 90),
    );
  }
  const { code } = await errorOf(await client.post(PATH, '{"targetUrl":'));
  assert.equal(code, 'invalid_json');
});

test('invalid_handoff_actions: anything wrong inside the actions, each fault by its place', async () => {
  const client = clientOf(realWorld());
  const good = { type: 'verify', text: 'Paid' };
  for (const [actions, paths] of [
    [undefined, ['/actions']],
    [[], ['/actions']],
    [[good, 'navigate'], ['/actions/1']],
    [[{ ...good, type: 'hover' }], ['/actions/0/type']],
    [
      [
        { ...good, selector: 7 },
        { ...good, text: '' },
      ],
      ['/actions/0/selector', '/actions/1/text'],
    ],
    [
      [good, { type: 'verify' }, { type: 'click' }],
      ['/actions/1', '/actions/2'],
    ],
  ] as const) {
    const response = await client.post(PATH, { ...TASK, actions });
    const { status, code, details } = await errorOf(response);
    const found = (details as { path: string; message: string }[]).map((fault) => fault.path);
    assert.deepEqual(
      [status, code, found],
      [400, 'invalid_handoff_actions', paths],
      JSON.stringify(actions)?.slice(0, 90),
    );
  }
});

test('the words of a task come back in its package alone: not in an error, not in a log', async () => {
  const it = realWorld();
  const client = clientOf(it);
  const secret = 'hunter2';
  const type = { type: 'type', text: secret, selector: secret, description: secret };
  const bodies = [
    { targetUrl: `https://a.example/${secret}`, actions: [{ ...type, type: secret }] },
    { targetUrl: `https://a.example/${secret}`, actions: [{ type: 'select', description: secret }] },
    { targetUrl: `https://10.0.0.1/${secret}`, actions: [type], idempotencyKey: secret },
    { targetUrl: `https://a.example/${secret}`, actions: [type], returnUrl: `https://10.0.0.1/${secret}` },
  ];
  for (const body of bodies) {
    assert.doesNotMatch(await (await client.post(PATH, body)).text(), /hunter2/, JSON.stringify(body));
  }
  const packed = await (await client.post(PATH, { ...TASK, actions: [type] })).text();
  assert.match(packed, /hunter2/);
  assert.deepEqual(it.log.lines, []);
});

test('a refusal of the use case is answered as such; calls are counted by client address, by a rule of their own', async () => {
  const denied = refused('invalid_request', 'no', { details: [] });
  const client = clientOf(fakeWorld({ handOffBrowser: async () => denied }));
  assert.equal((await errorOf(await client.post(PATH, TASK))).code, 'invalid_request');
  const quota = countingQuota(2);
  const limited = clientOf(fakeWorld({ quota }));
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await limited.post(PATH, TASK)).status);
  assert.deepEqual(statuses, [200, 200, 429]);
  assert.deepEqual([...quota.taken], [['client-handoff 198.51.100.7', 3]]);
});

test('the capabilities: served with an entity tag, and each example is taken by the route', async () => {
  const client = clientOf(realWorld());
  const { status, headers, body } = await client.get('/api/handoff/capabilities');
  assert.equal(status, 200);
  const { examples, id, endpoint, actionTypes } = body as {
    id: string;
    endpoint: unknown;
    examples: { request: HandoffRequest }[];
    actionTypes: { type: string; needs: string[][] }[];
  };
  assert.deepEqual([id, endpoint], ['browser.handoff', { method: 'POST', path: PATH, paid: false }]);
  assert.ok(examples.length > 0);
  for (const { request } of examples) {
    const answer = (await (await client.post(PATH, request)).json()) as Answer;
    assert.deepEqual([answer.ok, answer.warnings], [true, []]);
    assert.equal(answer.handoff?.actions.length, request.actions.length);
  }
  // What a type is said to need is enough for the route, and without any of it the route says no.
  assert.equal(actionTypes.length, 10);
  for (const { type, needs } of actionTypes) {
    for (const left of [null, ...needs.keys()]) {
      const kept = needs.filter((_, at) => at !== left);
      const action = { type, ...Object.fromEntries(kept.map(([member]) => [member, 'x'])) };
      const response = await client.post(PATH, { ...TASK, actions: [action] });
      assert.equal(response.status, left === null ? 200 : 400, JSON.stringify(action));
    }
  }
  const again = await client.call('/api/handoff/capabilities', {
    headers: { 'if-none-match': headers.get('etag') ?? '' },
  });
  assert.equal(again.status, 304);
});
