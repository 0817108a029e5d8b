// A free look before paying: the verdict that an execution would get, for nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '#src/domain/limits.ts';
import { ALLOWED, isRefused } from '#src/domain/refusal.ts';
import { checkPolicy, type PolicyCheck } from '#src/usecases/decisions/check-policy.ts';
import { targetQuota } from '#src/usecases/decisions/judge-request.ts';
import type { ExecuteDeps } from '#src/usecases/execution/execute-webhook.ts';
import { type CallChanges, DEMO, execute, webhook } from '#test/support/given/given-call.ts';
import { refusalOf } from '#test/support/given/given-payment.ts';
import { shared, targetRules, type World, world } from '#test/support/world/fakes-world.ts';

type Request = NonNullable<CallChanges['request']>;

async function check(it: World, request: Request = {}, payer: string | null = null): Promise<PolicyCheck> {
  const answer = await checkPolicy(it.deps, webhook(request), payer);
  assert.ok(!isRefused(answer));
  return answer;
}
const blocking = { ...targetRules, mode: 'blocklist-quota', blockHosts: ['target.example'] } as const;
const counting = { ...blocking, blockHosts: [] };
const allowing = { ...targetRules, mode: 'allowlist', allowHosts: ['*.example.com'] } as const;

// ── one verdict ─────────────────────────────────────────────────────────────────────────────────────────

for (const [why, verdict, spoil, request, changes] of [
  ['a public name', 'allowed', () => {}, {}, {}],
  ['a name of the allow list', 'allowed', () => {}, { url: 'https://a.example.com/' }, { rules: allowing }],
  ['a blocked name', 'target_blocked', () => {}, {}, { rules: blocking }],
  ['a name that is not on the allow list', 'target_not_allowed', () => {}, {}, { rules: allowing }],
  ['a private address', 'unsafe_target', () => {}, { url: 'https://10.0.0.1/' }, {}],
  ['our own name', 'unsafe_target', () => {}, { url: 'https://relay.example/api/jobs' }, {}],
  [
    'a name without address',
    'target_unresolvable',
    (it) => it.resolver.answer({ outcome: 'not_found' }),
    {},
    {},
  ],
  [
    'a name with a private address',
    'target_unresolvable',
    (it) => it.resolver.answer({ outcome: 'addresses', addresses: ['203.0.114.7', '127.0.0.1'] }),
    {},
    {},
  ],
  [
    'a name for which no server answers',
    'target_unresolvable',
    (it) => it.resolver.answer({ outcome: 'failed', timedOut: true }),
    {},
    {},
  ],
  ['no free look-up', 'too_many_in_flight', (it) => it.resolver.answer({ outcome: 'busy' }), {}, {}],
  [
    'a host whose share is used up',
    'target_quota_exceeded',
    (it) => it.quota.exhaust('target', 1500),
    {},
    { rules: counting },
  ],
] as [string, string, (it: World) => void, Request, Partial<ExecuteDeps>][]) {
  test(`${why}: ${verdict}, in the same words to a check and to an execution, which sends nothing where it is a no`, async () => {
    const it = world(shared(), changes);
    spoil(it);
    const checked = (await check(it, request)).verdict;
    const answer = await execute(it, { ...DEMO, request });
    assert.equal(isRefused(checked) ? checked.refused : checked.kind, verdict);
    if (!isRefused(checked)) assert.equal(answer.kind, 'ran');
    else assert.deepEqual(answer, { kind: 'refused', refusal: checked });
    assert.equal(it.outbound.sent.length, isRefused(checked) ? 0 : 1);
  });
}

test('an address written as such is not looked up; a name is, once, for 2 s at most', async () => {
  const it = world();
  await check(it, { url: 'https://203.0.114.9/' });
  assert.deepEqual(it.resolver.asked, []);
  await check(it);
  assert.deepEqual(it.resolver.asked, [['target.example', LIMITS.policyDnsMs.max]]);
});

test('a check writes nothing and takes nothing, however often', async () => {
  const it = world(shared(), { rules: counting, targetQuotaPerMinute: 1 });
  for (let i = 0; i < 30; i++) assert.equal((await check(it, {}, 'demo')).verdict, ALLOWED);
  assert.deepEqual([it.trace, it.quota.calls.filter(({ how }) => how === 'take')], [[], []]);
});

test('an unreadable url or header is invalid_request, with its fault', async () => {
  const it = world();
  for (const [request, path] of [
    [{ url: 'https://' }, '/url'],
    [{ headers: { 'a b': '1' } }, '/headers'],
  ] as const) {
    const answer = await checkPolicy(it.deps, webhook(request), null);
    assert.ok(isRefused(answer));
    assert.equal(answer.refused, 'invalid_request');
    assert.equal((answer.details as { path: string }[])[0]?.path, path);
  }
  assert.deepEqual(it.steps, []);
});

// ── the quota that is looked at ─────────────────────────────────────────────────────────────────────────

const host = { name: 'target', windowMs: 60_000, maxRequests: 200 };
const own = { name: 'target-per-payer', windowMs: 60_000, maxRequests: 20 };

test('blocklist-quota: the payer’s own quota of a host, and ten times that over all payers', async () => {
  const it = world(shared(), { rules: counting });
  await check(it, {}, null);
  await check(it, {}, '0xpayer');
  assert.deepEqual(it.quota.calls, [
    { how: 'look', rule: host, key: 'target.example' },
    { how: 'look', rule: own, key: '0xpayer target.example' },
    { how: 'look', rule: host, key: 'target.example' },
  ]);
  assert.deepEqual(targetQuota(it.deps), own);
});

test('in the other modes a target has no quota', async () => {
  for (const rules of [targetRules, { ...allowing, allowHosts: ['target.example'] }]) {
    const it = world(shared(), { rules });
    await check(it, {}, 'demo');
    await execute(it, DEMO);
    assert.deepEqual(it.quota.calls, []);
    assert.equal(targetQuota(it.deps), null);
  }
});

test('target_quota_exceeded says when the last of the full windows ends, in whole seconds, never 0', async () => {
  const it = world(shared(), { rules: counting });
  it.quota.exhaust('target', 0);
  const first = (await check(it, {}, 'demo')).verdict;
  assert.equal(isRefused(first) && first.retryAfterSeconds, 1);
  it.quota.exhaust('target-per-payer', 4001);
  const second = (await check(it, {}, 'demo')).verdict;
  assert.equal(isRefused(second) && second.retryAfterSeconds, 5);
});

test('20 calls a minute of one payer to one host; the next takes nothing from the others’ share of it', async () => {
  const it = world(shared(), { rules: counting });
  const call = () => execute(it, { ...DEMO, key: null });
  for (let i = 0; i < 20; i++) assert.equal((await call()).kind, 'ran');
  for (let i = 0; i < 5; i++) assert.equal((await call()).kind, 'refused');
  const racing = world(it.common, { rules: counting, quota: { ...it.quota, look: neverFull } });
  const answer = await refusalOf(racing, { ...DEMO, key: null });
  assert.equal(answer.refused, 'target_quota_exceeded');
  assert.deepEqual([it.quota.taken('target-per-payer'), it.quota.taken('target')], [21, 20]);
  assert.equal(it.outbound.sent.length + racing.outbound.sent.length, 20);
});
const neverFull = async () => ({ allowed: true, limit: 20, remaining: 1, resetMs: 1 });

// ── what would be sent ──────────────────────────────────────────────────────────────────────────────────

test('a check returns the target and the request as an execution would read them, without any value', async () => {
  const it = world();
  const full = await check(it, {
    url: 'https://TARGET.example:8443/secret-path?secret',
    method: 'PATCH',
    headers: { 'X-A': 'secret', Host: 'secret', 'X-Hop': 'secret', connection: 'X-Hop' },
    body: null,
    retry: { attempts: 3 },
    timeoutMs: 1000,
  });
  assert.deepEqual(full.target, { protocol: 'https:', hostname: 'target.example', port: 8443 });
  assert.deepEqual(full.normalized, {
    method: 'PATCH',
    retry: { attempts: 3, backoffMs: 250 },
    timeoutMs: 1000,
    idempotencyKeyPresent: true,
    forwardedHeaders: ['x-a'],
    strippedHeaders: ['host', 'x-hop', 'connection'],
    bodyPresent: true,
  });
  assert.doesNotMatch(JSON.stringify(full), /secret/);
  assert.deepEqual(codes(full), ['headers_stripped', 'target_may_see_repeats']);
});

const codes = ({ warnings }: PolicyCheck) => warnings.map(({ code }) => code);

test('a body under a content type that is not JSON is body_is_json: the target gets JSON all the same', async () => {
  const it = world();
  const typed = (name: string, type: string, body?: string | null | object) =>
    check(it, { headers: { [name]: type }, ...(body === undefined ? {} : { body }) });
  for (const type of [
    'application/x-www-form-urlencoded',
    'text/plain; charset=utf-8',
    'application/jsonp',
    '',
  ])
    for (const body of ['a=b&c=d', { a: 1 }, null])
      assert.deepEqual(codes(await typed('Content-Type', type, body)), ['body_is_json'], type);
  for (const type of [
    'application/json',
    'Application/JSON; charset=utf-8',
    'application/cloudevents+json',
    'text/json',
  ])
    assert.deepEqual(codes(await typed('content-type', type, 'text')), [], type);
  const { body: _, ...bodiless } = webhook();
  const plain = await checkPolicy(it.deps, { ...bodiless, headers: { 'content-type': 'text/plain' } }, null);
  assert.deepEqual(isRefused(plain) ? plain : codes(plain), []);
  assert.deepEqual(codes(await check(it, { body: 'text' })), []);
});

test('each warning comes for its own reason; a plain request with a key has none', async () => {
  const it = world();
  assert.deepEqual(codes(await check(it)), []);
  assert.deepEqual(codes(await check(it, { retry: { attempts: 2 } })), ['target_may_see_repeats']);
  for (const type of [
    'application/x-www-form-urlencoded',
    'text/plain; charset=utf-8',
    'application/jsonx',
  ]) {
    const form = { headers: { 'Content-Type': type }, body: 'a=b&c=d' };
    assert.deepEqual(codes(await check(it, form)), ['body_is_json'], type);
  }
  for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/cloudevents+json'])
    assert.deepEqual(codes(await check(it, { headers: { 'content-type': type }, body: 1 })), [], type);
  const { idempotencyKey: _, ...keyless } = webhook();
  const answer = await checkPolicy(it.deps, { url: keyless.url }, null);
  assert.ok(!isRefused(answer));
  assert.deepEqual(codes(answer), ['idempotency_key_missing']);
  assert.deepEqual(answer.normalized, {
    method: 'POST',
    retry: { attempts: 1, backoffMs: 250 },
    timeoutMs: 12_000,
    idempotencyKeyPresent: false,
    forwardedHeaders: [],
    strippedHeaders: [],
    bodyPresent: false,
  });
});
