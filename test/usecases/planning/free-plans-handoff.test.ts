// A package for a browser agent: the target judged by the one verdict, nothing called, stored or logged.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import type { HandoffRequest } from '#src/domain/planning/handoff.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { Resolution } from '#src/ports/resolver.ts';
import { checkPolicy } from '#src/usecases/decisions/check-policy.ts';
import type { ExecuteDeps } from '#src/usecases/execution/execute-webhook.ts';
import { type Handoff, handOffBrowser } from '#src/usecases/planning/free-plans.ts';
import { shared, targetRules, type World, world } from '#test/support/world/fakes-world.ts';

const task = (changes: Partial<HandoffRequest> = {}): HandoffRequest => ({
  targetUrl: 'https://target.example/shop',
  actions: [{ type: 'navigate' }, { type: 'verify', text: 'Paid' }],
  idempotencyKey: 'k1',
  ...changes,
});

const ask = (it: World, changes: Partial<HandoffRequest> = {}, payer: string | null = null) =>
  handOffBrowser({ ...it.deps, payer }, task(changes));

async function given(it: World, changes: Partial<HandoffRequest> = {}): Promise<Handoff> {
  const answer = await ask(it, changes);
  assert.ok(!isRefused(answer));
  return answer;
}

async function packageOf(it: World, changes: Partial<HandoffRequest> = {}) {
  const { verdict } = await given(it, changes);
  assert.ok(!isRefused(verdict));
  return verdict.handoff;
}

async function refusalOf(it: World, changes: Partial<HandoffRequest>) {
  const answer = await ask(it, changes);
  assert.ok(isRefused(answer));
  const [fault, ...more] = answer.details as { path: string; message: string }[];
  return [answer.refused, fault?.path, more.length];
}

test('a package has an id of its own, and an hour', async () => {
  const it = world();
  const handoff = await packageOf(it);
  assert.match(handoff.id, new RegExp(ID_PATTERN.handoff));
  assert.equal(Date.parse(handoff.createdAt), it.clock.now());
  assert.equal(Date.parse(handoff.expiresAt) - Date.parse(handoff.createdAt), 3_600_000);
  assert.notEqual((await packageOf(it)).id, handoff.id);
});

test('the addresses of a package are the normalised ones, with the fragment that only a browser needs', async () => {
  const it = world();
  const handoff = await packageOf(it, {
    targetUrl: 'https://TARGET.example.:8443/a/../shop?q=1#/orders/17',
    returnUrl: 'HTTPS://Back.example/done?x#end',
  });
  assert.deepEqual(handoff.target, {
    url: 'https://target.example:8443/shop?q=1#/orders/17',
    origin: 'https://target.example:8443',
    hostname: 'target.example',
    pathname: '/shop',
  });
  assert.equal(handoff.returnUrl, 'https://back.example/done?x#end');
});

const blocking = { ...targetRules, mode: 'blocklist-quota', blockHosts: ['target.example'] } as const;
const counting = { ...blocking, blockHosts: [] };

test('a refused target: the verdict of the policy check, and no package', async () => {
  const it = world(shared(), { rules: blocking });
  const { verdict } = await given(it);
  assert.ok(isRefused(verdict));
  assert.equal(verdict.refused, 'target_blocked');
  const checked = await checkPolicy(it.deps, { url: task().targetUrl }, null);
  assert.ok(!isRefused(checked));
  assert.deepEqual(checked.verdict, verdict);
});

test('nothing is called, recorded, taken or logged', async () => {
  const it = world(shared(), { rules: counting, targetQuotaPerMinute: 1 });
  for (let i = 0; i < 5; i++) await packageOf(it, { returnUrl: 'https://back.example/' });
  assert.deepEqual([it.trace, it.outbound.sent, it.logger.lines], [[], [], []]);
  assert.deepEqual(
    it.quota.calls.filter(({ how }) => how === 'take'),
    [],
  );
});

test('the quota that is looked at is the payer’s, where it is known', async () => {
  const it = world(shared(), { rules: counting });
  it.quota.exhaust('target-per-payer', 1000);
  const answer = await ask(it, {}, 'demo');
  assert.ok(!isRefused(answer) && isRefused(answer.verdict));
  assert.ok(!isRefused((await given(it)).verdict));
});

test('target and returnUrl are looked up once each, and nothing where the request is refused by its text', async () => {
  const it = world();
  await packageOf(it, { returnUrl: 'https://back.example/' });
  assert.deepEqual(
    it.resolver.asked.map(([name]) => name),
    ['back.example', 'target.example'],
  );
  await ask(it, { targetUrl: 'https://' });
  await ask(it, { returnUrl: 'https://10.0.0.1/' });
  await ask(it, { actions: [{ type: 'type' }] });
  assert.equal(it.resolver.asked.length, 2);
});

/** A world where names but that of the returnUrl have their address. */
const withBack = (answer: Resolution, changes: Partial<ExecuteDeps> = {}) => {
  const addresses = ['203.0.114.7'];
  const resolver: ExecuteDeps['resolver'] = {
    resolve: async (name) => (name === 'back.example' ? answer : { outcome: 'addresses', addresses }),
  };
  return world(shared(), { resolver, ...changes });
};
const RETURN = { returnUrl: 'https://back.example/done' };

test('a returnUrl whose name has no public address gets no package, in one text whether it is private or missing', async () => {
  const own = { own: [describeAddress('93.184.216.40') ?? assert.fail()] };
  const rules = { ...targetRules, addresses: { ...targetRules.addresses, ...own } };
  const answers = await Promise.all(
    [
      { outcome: 'not_found' } as const,
      ...[['10.0.0.1'], ['169.254.169.254'], ['203.0.114.7', '127.0.0.1'], ['::1'], ['93.184.216.40']].map(
        (addresses) => ({ outcome: 'addresses', addresses }) as const,
      ),
    ].map((answer) => ask(withBack(answer, { rules }), RETURN)),
  );
  for (const answer of answers) {
    assert.ok(!isRefused(answer));
    assert.deepEqual(answer.verdict, {
      refused: 'target_unresolvable',
      message: 'returnUrl: The target host has no public address.',
      details: { retryable: false },
    });
  }
});

test('a returnUrl that the mode does not let through, or that cannot be looked up now, is no package either', async () => {
  const good: Resolution = { outcome: 'addresses', addresses: ['203.0.114.7'] };
  const rules = { ...blocking, blockHosts: ['back.example'] };
  const local = { returnUrl: 'https://localhost/' };
  for (const [it, changes, code] of [
    [withBack(good, { rules }), RETURN, 'target_blocked'],
    [withBack({ outcome: 'busy' }), RETURN, 'too_many_in_flight'],
    [withBack({ outcome: 'failed', timedOut: true }), RETURN, 'target_unresolvable'],
    [world(), local, 'unsafe_target'],
  ] as const) {
    const { verdict } = await given(it, changes);
    assert.ok(isRefused(verdict));
    assert.equal(verdict.refused, code);
  }
});

test('the share of a host is the target’s: a returnUrl takes and needs none of it', async () => {
  const it = withBack({ outcome: 'addresses', addresses: ['203.0.114.7'] }, { rules: counting });
  await packageOf(it, RETURN);
  assert.deepEqual(
    it.quota.calls.map(({ key }) => key),
    ['target.example'],
  );
});

test('invalid_request: a url that cannot be read as one of HTTPS, by its place', async () => {
  const it = world();
  for (const [changes, path] of [
    [{ targetUrl: 'https://' }, '/targetUrl'],
    [{ targetUrl: 'http://target.example/' }, '/targetUrl'],
    [{ returnUrl: 'https://' }, '/returnUrl'],
    [{ returnUrl: 'http://back.example/' }, '/returnUrl'],
  ] as const) {
    assert.deepEqual(await refusalOf(it, changes), ['invalid_request', path, 0], JSON.stringify(changes));
  }
});

test('warnings come with a refused target, too', async () => {
  const it = world();
  const { idempotencyKey: _, ...keyless } = task({
    targetUrl: 'https://10.0.0.1/',
    actions: [{ type: 'type', text: 'x', selector: '#name' }],
  });
  const answer = await handOffBrowser({ ...it.deps, payer: null }, keyless);
  assert.ok(!isRefused(answer));
  const codes = answer.warnings.map(({ code }) => code);
  assert.deepEqual(
    [isRefused(answer.verdict), codes],
    [true, ['idempotency_key_missing', 'typed_text_may_be_secret']],
  );
});
