// The main documents, compared with the specification, the limits and the schemas that the routes enforce.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { capabilities } from '#src/discovery/documents/capabilities.ts';
import { catalog } from '#src/discovery/documents/catalog.ts';
import { secretsPolicy } from '#src/discovery/documents/free-surfaces.ts';
import { quickstart } from '#src/discovery/documents/quickstart.ts';
import { llmsText } from '#src/discovery/documents/well-known.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { guidanceText } from '#src/discovery/guidance.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS, type Limit, METHODS, TIMES } from '#src/domain/limits.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { documentFacts } from '#src/http/routes/documents.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const factsWith = (changes: Partial<Facts> = {}): Facts => ({ ...documentFacts(fakeWorld()), ...changes });
const check = schemaCheck(WebhookRequest);

test('the catalog names its primitives and surfaces as the specification does', () => {
  const built = catalog.build(factsWith());
  const { activePrimitive, guidedPrimitive, scheduledActions, browserHandoff, secretStorage } = built;
  const { id, method, path, paid, price, network, targetPolicyPreset } = activePrimitive;
  assert.deepEqual(
    { id, method, path, paid, price, network, targetPolicyPreset },
    {
      id: 'execute.webhook',
      method: 'POST',
      path: '/api/execute/webhook',
      paid: true,
      price: '$0.003',
      network: 'eip155:8453',
      targetPolicyPreset: 'open',
    },
  );
  assert.equal(guidedPrimitive.id, 'execute.guided_webhook');
  assert.equal(guidedPrimitive.decisionRoute, '/api/decide/webhook');
  const surfaces = [scheduledActions, browserHandoff, secretStorage].map((surface) => [
    surface.id,
    surface.status,
    `${surface.endpoint.method} ${surface.endpoint.path} ${surface.endpoint.paid}`,
  ]);
  assert.deepEqual(surfaces, [
    ['scheduled.webhook', 'preview-only', 'POST /api/schedules/preview false'],
    ['browser.handoff', 'active-handoff-only', 'POST /api/handoff/browser false'],
    ['secrets.policy', 'policy-only', 'GET /api/secrets/policy false'],
  ]);
});

test('the catalog lists the policy modes with their status; its action names the one in force', () => {
  for (const mode of ['open-public-https', 'blocklist-quota', 'allowlist'] as const) {
    const { policyModes, activePrimitive } = catalog.build(factsWith({ policyMode: mode }));
    assert.deepEqual(
      policyModes.map(({ id, status }) => [id, status]),
      [
        ['open-public-https', 'active'],
        ['blocklist-quota', 'active'],
        ['allowlist', 'supported'],
      ],
    );
    assert.equal(activePrimitive.targetPolicyPreset, mode === 'open-public-https' ? 'open' : mode);
  }
});

test('seven templates, one for each kind of target, in the six categories', () => {
  const { templates, categories } = catalog.build(factsWith());
  assert.deepEqual(categories, [
    'automation',
    'business-workflows',
    'chatops',
    'data',
    'developer-tools',
    'ops',
  ]);
  assert.deepEqual(
    templates.map(({ id, category }) => `${category} ${id}`),
    [
      'chatops chat-incoming-webhook',
      'chatops bot-message-api',
      'ops alert-bridge',
      'automation automation-catch-hook',
      'developer-tools ci-dispatch',
      'data analytics-ingest',
      'business-workflows ticket-create',
    ],
  );
  for (const { status, actionId, paidRoute, verification } of templates) {
    assert.deepEqual([status, actionId, paidRoute], ['active', 'execute.webhook', '/api/execute/webhook']);
    assert.equal(verification.length, 3);
  }
});

test('every example is a valid request with a key of its own, to example.com, with placeholders for secrets', () => {
  const examples = catalog.build(factsWith()).templates.map(({ exampleRequest }) => exampleRequest);
  for (const example of examples) {
    assert.deepEqual(check.faults(example), []);
    assert.match(new URL(example.url).hostname, /\.example\.com$/);
    for (const value of Object.values(example.headers ?? {}))
      assert.match(String(value), /^(Bearer )?[A-Z-]+$/);
    // A placeholder for a credential in the address is in capitals, too.
    assert.doesNotMatch(new URL(example.url).pathname, /[0-9a-f]{8}|\d{4}/i);
  }
  assert.equal(new Set(examples.map(({ idempotencyKey }) => idempotencyKey)).size, 7);
  assert.ok(!examples.some(({ idempotencyKey }) => idempotencyKey === undefined));
});

test('the minimal request is valid, and calls the canary if that can be a target', () => {
  const urlAt = (baseUrl: string) => {
    const { minimalRequest } = quickstart.build(factsWith({ baseUrl }));
    assert.deepEqual(check.faults(minimalRequest), []);
    return minimalRequest.url;
  };
  assert.equal(urlAt('https://relay.example'), 'https://relay.example/api/canary/echo');
  assert.equal(urlAt('http://127.0.0.1:3402'), 'https://example.com/hook');
});

test('the call flow goes from discovery to the stored receipt, in the order of the specification', () => {
  const { callFlow, decisionRules } = quickstart.build(factsWith());
  const steps = [
    /discovery documents/,
    /^Prepare the action/,
    /\/api\/decide\/webhook .*buyerPolicy/,
    /^Optional.*\/api\/policy\/check/,
    /402.*price, network, payTo/,
    /pay_and_execute.*\/api\/execute\/guided-webhook.*\/api\/execute\/webhook/,
    /links\.job or links\.receipt/,
    /\/api\/verify\/jobs\/\{id\}.*\/api\/verify\/receipts\/\{id\}.*without this service.*jwks\.json.*npm install https:\/\/relay\.example\/verifier\/webhook-relay\.tgz.*\/verifier\/verify\.py/,
    /^Store the receipt id/,
  ];
  assert.equal(callFlow.length, steps.length);
  for (const [i, step] of steps.entries()) assert.match(callFlow[i] ?? '', step);
  assert.ok(decisionRules.useWhen.length >= 3 && decisionRules.avoidWhen.length >= 4);
});

test('the quickstart contains the enforced limits, and address templates', () => {
  const { limits, verify } = quickstart.build(factsWith());
  assert.deepEqual(limits, {
    allowedMethods: METHODS,
    maxRetryAttempts: LIMITS.retryAttempts.max,
    maxWebhookTimeoutMs: LIMITS.timeoutMs.max,
    privateNetworkTargetsBlocked: true,
  });
  assert.deepEqual(verify, {
    job: 'https://relay.example/api/verify/jobs/{id}',
    receipt: 'https://relay.example/api/verify/receipts/{id}',
    publicProofs: 'https://relay.example/api/proofs/recent',
    proofBadge: 'https://relay.example/proof/{jobOrReceiptId}/badge.svg',
  });
});

test('the capabilities contain every limit once, with its number, unit and meaning', () => {
  const { limits, execution, idempotency, decisions } = capabilities.build(factsWith());
  for (const [name, limit] of Object.entries<Limit>(LIMITS)) {
    assert.deepEqual(
      limits.filter((one) => one.name === name),
      [{ name, ...limit }],
    );
    assert.ok(limit.meaning.length > 10 && limit.whenExceeded.length > 10, name);
  }
  assert.deepEqual(execution.methods, METHODS);
  assert.equal(idempotency.keyFreesAfterMs, TIMES.idempotencyRetentionMs);
  assert.equal(decisions.validForMs, TIMES.decisionValidMs);
});

test('the canary is described as free to call directly, with its cost as a target', () => {
  const facts = factsWith();
  for (const text of [
    capabilities.build(facts).doesNot.join(),
    quickstart.build(facts).callFlow.join(),
    guidanceText(facts),
    llmsText(facts),
  ])
    assert.match(
      text,
      /POST \/api\/canary\/echo is free to call directly.*As the target of an execution.*costs what any call costs/,
    );
});

test('every document describes targets that must not receive duplicates in the same way', () => {
  const rule = 'cannot safely receive duplicate attempts without idempotency (retry.attempts above 1';
  const { avoidWhen } = quickstart.build(factsWith()).decisionRules;
  for (const text of [avoidWhen.join(), guidanceText(factsWith()), llmsText(factsWith())]) {
    assert.equal(text.split(rule).length, 2, text);
    assert.equal(text.match(/duplicate/g)?.length, 1, text);
  }
});

test('the capabilities contain quota, rate limit and retention of this deployment', () => {
  const facts = factsWith({
    policyMode: 'blocklist-quota',
    targetQuota: { windowMs: 61_000, maxRequests: 23 },
    rateLimitPerMinute: 47,
    readsPerMinute: 48,
    maxInFlight: 19,
    retentionDays: { jobs: 3, receipts: 11 },
  });
  const { targetPolicy, limits, retention } = capabilities.build(facts);
  assert.deepEqual(targetPolicy.quota, facts.targetQuota);
  const max = (name: string) => limits.find((limit) => limit.name === name)?.max;
  assert.deepEqual([max('perMinutePerClientAddress'), max('inFlight')], [47, 19]);
  const { jobsDays, receiptsDays, decisionsDays } = retention;
  assert.deepEqual([jobsDays, receiptsDays, decisionsDays], [3, 11, 11]);
  const open = capabilities.build(factsWith()).limits;
  assert.equal(new Set(open.map(({ name }) => name)).size, open.length);
});

test('the secrets policy names what must never be sent and what is never stored', () => {
  const { neverSend, notStored, id, status } = secretsPolicy.build(factsWith());
  assert.deepEqual([id, status], ['secrets.policy', 'policy-only']);
  const never = neverSend.join('; ');
  for (const word of ['wallet private keys', 'seed phrases', 'database URLs', 'long-lived admin credentials'])
    assert.ok(never.includes(word), word);
  const unstored = notStored.join('; ');
  for (const word of ['URL', 'Header names and values', 'bodies', 'idempotencyKey', 'payment signature'])
    assert.ok(unstored.includes(word), word);
});
