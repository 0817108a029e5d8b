// A decision: judged as an execution would be, recorded before it is returned, and replayable from its event alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { recommend } from '#src/domain/decision/recommend.ts';
import { decodeEvent } from '#src/domain/event-codec.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { Fault, isRefused } from '#src/domain/refusal.ts';
import { checkPolicy } from '#src/usecases/decisions/check-policy.ts';
import type { DecideDeps } from '#src/usecases/decisions/decide-webhook.ts';
import { decide, decided, plainAction } from '#test/support/given/given-decision.ts';
import { decisionRecorded, T0 } from '#test/support/given/given-events.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { shared, targetRules, world } from '#test/support/world/fakes-world.ts';

const codeOf = async (answer: ReturnType<typeof decide>) => {
  const said = await answer;
  return isRefused(said) ? said.refused : said.recommendation;
};

test('a decision is one event, first in a stream of its own, and the answer is that event', async () => {
  const it = world();
  const { decision } = await decided(it);
  assert.match(decision.decisionId, new RegExp(ID_PATTERN.decision));
  const [event, ...more] = it.log.events;
  assert.ok(event);
  assert.deepEqual(more, []);
  assert.deepEqual([event.stream, event.revision], [`decision-${decision.decisionId}`, 0n]);
  assert.deepEqual(decodeEvent(event), { type: 'DecisionRecorded', data: decision });
  assert.equal(event.metadata.$correlationId, decision.decisionId);
});

test('a sound action of a sound service: pay_and_execute, for 24 hours from now', async () => {
  const it = world();
  const { decision } = await decided(it);
  assert.deepEqual([decision.recommendation, decision.confidence], ['pay_and_execute', 'high']);
  assert.equal(decision.createdAt, new Date(T0).toISOString());
  assert.equal(decision.expiresAt, new Date(T0 + 24 * 3_600_000).toISOString());
  assert.deepEqual(decision.facts, decisionRecorded().data.facts);
  assert.deepEqual(decision.buyerPolicy, {
    maxPriceUsd: null,
    requireReceipt: true,
    requirePolicyPass: true,
    requireIdempotencyKey: true,
    minTrustScore: 55,
    allowedNetworks: null,
  });
});

test('the facts are those of the action, of the offer and of the read models', async () => {
  const it = world();
  const action = plainAction({
    method: 'DELETE',
    idempotencyKey: undefined,
    headers: { Host: 'a', Via: 'b', 'Content-Type': 'application/x-www-form-urlencoded' },
  });
  const market = { trustScore: null, recentFailureRate: 0.75, recentFinishedJobs: 100 };
  const offer = { price: '$1.5', network: 'eip155:1', payTo: null };
  const { decision } = await decided(it, { action, deps: { market: async () => market, offer } });
  assert.deepEqual(decision.facts, {
    ...offer,
    ...market,
    policyVerdict: 'allowed',
    method: 'DELETE',
    idempotencyKeyPresent: false,
    strippedHeaders: 2,
    measured: true,
    contentTypeDiffers: true,
  });
});

test('a key beside the action counts, and is no part of it: the guided call is made of the action as it was decided', async () => {
  const it = world();
  const action = plainAction({ idempotencyKey: undefined });
  const { decision: without } = await decided(it, { action });
  const { decision: beside } = await decided(it, { action, hasKey: true });
  assert.deepEqual([without.facts.idempotencyKeyPresent, beside.facts.idempotencyKeyPresent], [false, true]);
  assert.deepEqual([without.recommendation, beside.recommendation], ['manual_review', 'pay_and_execute']);
  assert.equal(beside.actionHash, without.actionHash);
});

test('each request is a decision of its own, about the same action by the same hashes', async () => {
  const it = world();
  const [{ decision: first }, { decision: second }] = [await decided(it), await decided(it)];
  assert.notEqual(second.decisionId, first.decisionId);
  assert.deepEqual({ ...second, decisionId: first.decisionId }, first);
  const { decision: third } = await decided(world(it.common));
  assert.deepEqual([third.actionHash, third.policyHash], [first.actionHash, first.policyHash]);
});

// ── one verdict ─────────────────────────────────────────────────────────────────────────────────────────

const blocking = { ...targetRules, mode: 'blocklist-quota', blockHosts: ['target.example'] } as const;
const counting = { ...blocking, blockHosts: [] };

test('a refused target is a decision and no error, with the verdict of a policy check', async () => {
  const it = world(shared(), { rules: blocking });
  const { decision } = await decided(it);
  assert.deepEqual([decision.recommendation, decision.confidence], ['do_not_pay', 'high']);
  assert.deepEqual(
    decision.blockingIssues.map(({ code }) => code),
    ['target_blocked'],
  );
  assert.equal(decision.facts.policyVerdict, 'target_blocked');
  const checked = await checkPolicy(it.deps, plainAction(), null);
  assert.ok(!isRefused(checked) && isRefused(checked.verdict));
  assert.equal(checked.verdict.refused, 'target_blocked');
  assert.equal(it.log.events.length, 1);
});

for (const requirePolicyPass of [true, false])
  test(`DNS gave no answer: manual_review, never a verdict on the target (requirePolicyPass ${requirePolicyPass})`, async () => {
    const it = world();
    it.resolver.answer({ outcome: 'failed', timedOut: true });
    const { decision } = await decided(it, { buyerPolicy: { requirePolicyPass } });
    assert.deepEqual([decision.recommendation, decision.blockingIssues], ['manual_review', []]);
    assert.deepEqual(
      decision.warnings.map(({ code }) => code),
      ['target_unresolved_now'],
    );
    assert.equal(decision.facts.policyVerdict, 'target_unresolved_now');
    assert.deepEqual(recommend(decision.facts, decision.buyerPolicy).warnings, decision.warnings);
    it.resolver.answer({ outcome: 'failed', timedOut: false });
    const checked = await checkPolicy(it.deps, plainAction(), null);
    assert.ok(!isRefused(checked) && isRefused(checked.verdict));
    assert.deepEqual(
      [checked.verdict.refused, checked.verdict.details],
      ['target_unresolvable', { retryable: true }],
    );
  });

test('DNS answers that there is no address: do_not_pay', async () => {
  const it = world();
  it.resolver.answer({ outcome: 'not_found' });
  const { decision } = await decided(it);
  assert.deepEqual(
    [decision.recommendation, decision.facts.policyVerdict],
    ['do_not_pay', 'target_unresolvable'],
  );
});

test('requirePolicyPass false: the same refusal is a warning', async () => {
  const it = world(shared(), { rules: blocking });
  const { decision } = await decided(it, { buyerPolicy: { requirePolicyPass: false } });
  assert.equal(decision.recommendation, 'manual_review');
  assert.deepEqual(
    decision.warnings.map(({ code }) => code),
    ['target_blocked'],
  );
});

test('the quota checked is that of the payer, if known; none is taken', async () => {
  for (const [payer, rules] of [
    [null, ['target']],
    ['demo', ['target-per-payer', 'target']],
  ] as const) {
    const it = world(shared(), { rules: counting });
    await decided(it, { deps: { payer } });
    assert.deepEqual(
      it.quota.calls.map(({ how, rule }) => [how, rule.name]),
      rules.map((name) => ['look', name]),
    );
  }
});

// ── no decision ─────────────────────────────────────────────────────────────────────────────────────────

test('invalid_request: an action that no schema can see through is refused, with its fault; nothing is asked or recorded', async () => {
  const it = world();
  for (const [action, path] of [
    [plainAction({ url: 'https://' }), '/action/url'],
    [plainAction({ headers: { 'a b': '1' } }), '/action/headers'],
  ] as const) {
    const answer = await decide(it, { action });
    assert.ok(isRefused(answer));
    assert.equal(answer.refused, 'invalid_request');
    assert.equal((answer.details as { path: string }[])[0]?.path, path);
  }
  assert.deepEqual([it.steps, it.log.events], [[], []]);
});

test('too_many_in_flight: our own look-ups being full says nothing of the action, so it is not decided', async () => {
  const it = world();
  it.resolver.answer({ outcome: 'busy' });
  assert.equal(await codeOf(decide(it)), 'too_many_in_flight');
  assert.deepEqual(it.log.events, []);
});

test('trust_unavailable: without read models it is decided with trust unknown, which is recorded and warned of', async () => {
  const it = world();
  const market = async () => {
    throw new Fault('read_models_unavailable', 'The read models are unavailable.');
  };
  for (const [url, recommendation] of [
    ['https://target.example/hook', 'manual_review'],
    ['https://10.0.0.1/', 'do_not_pay'],
  ] as const) {
    const { decision } = await decided(it, { action: plainAction({ url }), deps: { market } });
    assert.equal(decision.recommendation, recommendation);
    assert.deepEqual(
      decision.warnings.map(({ code }) => code),
      ['trust_unavailable'],
    );
    const { trustScore, recentFailureRate, recentFinishedJobs } = decision.facts;
    assert.deepEqual([trustScore, recentFailureRate, recentFinishedJobs], [null, 0, 0]);
    assert.equal(
      decision.reasons.some(({ code }) => code === 'recent_jobs_few'),
      false,
      'unknown is not few',
    );
  }
  assert.equal(it.log.events.length, 2);
});

test('a failure that is no unavailable read model is not taken for one', async () => {
  const it = world();
  const market = async () => {
    throw new Error('a bug');
  };
  await assert.rejects(decide(it, { deps: { market } }), /a bug/);
  assert.deepEqual(it.log.events, []);
});

// ── replayed ────────────────────────────────────────────────────────────────────────────────────────────

const anyAction = fc.record(
  {
    url: fc.constantFrom('https://target.example/', 'https://10.0.0.1/', 'https://relay.example/'),
    method: fc.constantFrom('POST', 'PUT', 'PATCH', 'DELETE'),
    headers: fc.dictionary(fc.constantFrom('x-a', 'Host', 'Via'), fc.constant('v')),
    idempotencyKey: fc.constantFrom('k'),
  },
  { requiredKeys: ['url'] },
) as fc.Arbitrary<WebhookRequest>;
const anyBuyer = fc.record(
  {
    maxPriceUsd: fc.constantFrom('0', '0.002999', '0.003', '0.0030', '1'),
    requireReceipt: fc.boolean(),
    requirePolicyPass: fc.boolean(),
    requireIdempotencyKey: fc.boolean(),
    minTrustScore: fc.double({ min: 0, max: 100, noNaN: true }),
    allowedNetworks: fc.subarray(['eip155:8453', 'eip155:1']),
  },
  { requiredKeys: [] },
);
const anyMarket = fc.record({
  trustScore: fc.option(fc.double({ min: 0, max: 100, noNaN: true })),
  recentFailureRate: fc.double({ min: 0, max: 1, noNaN: true }),
  recentFinishedJobs: fc.nat(40),
});

test('the event alone yields the recommendation that it holds, word for word', async () => {
  const it = world();
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(anyAction, anyBuyer, anyMarket, async (action, buyerPolicy, facts) => {
      const deps: Partial<DecideDeps> = { market: async () => facts };
      const { decision } = await decided(it, { action, buyerPolicy, deps });
      const stored = it.log.events.at(-1);
      assert.ok(stored);
      const event = decodeEvent(JSON.parse(JSON.stringify({ type: stored.type, data: stored.data })));
      assert.ok(event?.type === 'DecisionRecorded', 'what is stored can be read again');
      const { recommendation, confidence, blockingIssues, warnings, reasons } = event.data;
      assert.equal(event.data.decisionId, decision.decisionId);
      assert.deepEqual(recommend(event.data.facts, event.data.buyerPolicy), {
        recommendation,
        confidence,
        blockingIssues,
        warnings,
        reasons,
      });
      seen.add(recommendation);
    }),
    // seeded: all three recommendations must come up
    { numRuns: runs(200), seed: 4 },
  );
  assert.equal(seen.size, 3);
});

test('nothing of the action’s own text is recorded or logged: no url, header, body or key', async () => {
  const it = world();
  it.log.onNext('DecisionRecorded', async (store) => {
    await store();
    throw new Error('canary of the log');
  });
  const action = plainAction({
    url: 'https://target.example/canary-path?canary-query',
    headers: { 'X-Canary-Name': 'canary-value', Host: 'canary-host' },
    body: { canary: 'canary-body' },
    idempotencyKey: 'canary-key',
  });
  await assert.rejects(decide(it, { action }), /canary of the log/);
  await decided(it, { action: { ...action, url: 'https://10.0.0.1/canary-path' } });
  await decided(it, { action });
  assert.equal(it.log.events.length, 3);
  const written = JSON.stringify([it.log.events, it.logger.lines], (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  assert.doesNotMatch(written, /canary/i);
  assert.doesNotMatch(written, /target\.example|10\.0\.0\.1/);
});
