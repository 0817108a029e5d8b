// The main documents against the specification, the limits and the schemas that the routes enforce.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { capabilitiesDocument } from '#src/discovery/documents/capabilities.ts';
import { catalogDocument } from '#src/discovery/documents/catalog.ts';
import { guidanceText } from '#src/discovery/documents/guidance.ts';
import { llmsText } from '#src/discovery/documents/llms.ts';
import { quickstartDocument } from '#src/discovery/documents/quickstart.ts';
import { secretsPolicyDocument } from '#src/discovery/documents/secrets-policy.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { documentFacts } from '#src/http/routes/document-facts.ts';
import { fakeWorld } from '#test/support/http-deps.ts';

const factsWith = (changes: Partial<Facts> = {}): Facts => ({ ...documentFacts(fakeWorld()), ...changes });
const check = schemaCheck(WebhookRequest);

test('the catalog names its primitives and surfaces as the specification does', () => {
  const catalog = catalogDocument(factsWith());
  const { activePrimitive, guidedPrimitive, scheduledActions, browserHandoff, secretStorage } = catalog;
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

test('the catalog has the policy modes with their status, and tells which one is in force', () => {
  for (const mode of ['open-public-https', 'blocklist-quota', 'allowlist'] as const) {
    const { policyModes, activePrimitive } = catalogDocument(factsWith({ policyMode: mode }));
    assert.deepEqual(
      policyModes.map(({ id, status }) => [id, status]),
      [
        ['open-public-https', 'active'],
        ['blocklist-quota', 'active'],
        ['allowlist', 'supported'],
      ],
    );
    assert.deepEqual(
      policyModes.filter(({ selected }) => selected).map(({ id }) => id),
      [mode],
    );
    assert.equal(activePrimitive.targetPolicyPreset, mode === 'open-public-https' ? 'open' : mode);
  }
});

test('nine templates, one for each kind of target, in the six categories', () => {
  const { templates, categories } = catalogDocument(factsWith());
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
      'automation automation-scenario-webhook',
      'developer-tools ci-dispatch',
      'data analytics-ingest',
      'business-workflows crm-record-update',
      'business-workflows ticket-create',
    ],
  );
  for (const { status, actionId, paidRoute, verification } of templates) {
    assert.deepEqual([status, actionId, paidRoute], ['active', 'execute.webhook', '/api/execute/webhook']);
    assert.equal(verification.length, 3);
  }
});

test('every example is a valid request with a key of its own, to example.com, with placeholders for secrets', () => {
  const examples = catalogDocument(factsWith()).templates.map(({ exampleRequest }) => exampleRequest);
  for (const example of examples) {
    assert.deepEqual(check.faults(example), []);
    assert.match(new URL(example.url).hostname, /\.example\.com$/);
    for (const value of Object.values(example.headers ?? {}))
      assert.match(String(value), /^(Bearer )?[A-Z-]+$/);
    // What stands for a credential in the address is in capitals, too.
    assert.doesNotMatch(new URL(example.url).pathname, /[0-9a-f]{8}|\d{4}/i);
  }
  assert.equal(new Set(examples.map(({ idempotencyKey }) => idempotencyKey)).size, 9);
  assert.ok(!examples.some(({ idempotencyKey }) => idempotencyKey === undefined));
});

test('the minimal request is valid, and goes to the free target where that is one', () => {
  const urlAt = (baseUrl: string) => {
    const { minimalRequest } = quickstartDocument(factsWith({ baseUrl }));
    assert.deepEqual(check.faults(minimalRequest), []);
    return minimalRequest.url;
  };
  assert.equal(urlAt('https://relay.example'), 'https://relay.example/api/canary/echo');
  assert.equal(urlAt('http://127.0.0.1:3402'), 'https://example.com/hook');
});

test('the call flow goes from discovery to the stored receipt, in the order of the specification', () => {
  const { callFlow, decisionRules } = quickstartDocument(factsWith());
  const steps = [
    /discovery documents/,
    /^Prepare the action/,
    /\/api\/decide\/webhook .*buyerPolicy/,
    /^Optional.*\/api\/policy\/check/,
    /402.*price, network, payTo/,
    /pay_and_execute.*\/api\/execute\/guided-webhook.*\/api\/execute\/webhook/,
    /links\.job or links\.receipt/,
    /\/api\/verify\/jobs\/\{id\}.*\/api\/verify\/receipts\/\{id\}/,
    /^Store the receipt id/,
  ];
  assert.equal(callFlow.length, steps.length);
  for (const [i, step] of steps.entries()) assert.match(callFlow[i] ?? '', step);
  assert.ok(decisionRules.useWhen.length >= 3 && decisionRules.avoidWhen.length >= 4);
});

test('the quickstart tells limits as enforced, and addresses whose ids are left to fill in', () => {
  const { limits, verify } = quickstartDocument(factsWith());
  assert.deepEqual(limits, {
    allowedMethods: LIMITS.methods,
    maxRetryAttempts: LIMITS.attempts.max,
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

test('every limit that a caller can meet stands in the capabilities as it is enforced', () => {
  const targetQuota = { windowMs: 60_000, maxRequests: 23 };
  const { limits, execution, idempotency, decisions } = capabilitiesDocument(factsWith({ targetQuota }));
  const row = (name: string) => limits.find((limit) => limit.name === name);
  const max = (name: string) => row(name)?.max ?? Number.NaN;
  const range = (name: string) => ({ min: row(name)?.min, max: row(name)?.max, default: row(name)?.default });
  const told: Readonly<Record<keyof typeof LIMITS, unknown>> = {
    methods: execution.methods,
    urlMaxLength: max('urlLength'),
    idempotencyKeyMinLength: row('idempotencyKeyLength')?.min,
    idempotencyKeyMaxLength: max('idempotencyKeyLength'),
    attempts: range('retryAttempts'),
    backoffMs: range('retryBackoffMs'),
    timeoutMs: range('timeoutMs'),
    retryWaitMaxMs: max('retryWaitMs'),
    requestBodyBytes: max('requestBodyBytes'),
    requestBodyArrivalMs: max('requestBodyArrivalMs'),
    jsonDepth: max('jsonDepth'),
    mcpEnvelope: {
      bytes: max('mcpMessageBytes') - max('requestBodyBytes'),
      levels: max('mcpMessageDepth') - max('jsonDepth'),
    },
    targetHeaders: { count: max('targetHeaders'), bytes: max('targetHeaderBytes') },
    responseBodyBytes: max('responseBodyBytes'),
    responseHeaderBytes: max('responseHeaderBytes'),
    policyDnsMs: max('policyDnsMs'),
    decideBodyBytes: max('decideBodyBytes'),
    decidesPerMinute: max('decisionsPerMinute'),
    decidesPerDay: max('decisionsPerDay'),
    decisionValidMs: decisions.validForMs,
    decisions: range('recentDecisions'),
    proofs: range('recentProofs'),
    monitoringWindowMs: range('monitoringWindowMs'),
    recentFailures: max('recentFailures'),
    idempotencyRetentionMs: idempotency.keyFreesAfterMs,
    verifiesInFlight: max('verifiesInFlight'),
    jobsInFlightPerPayer: max('inFlightPerPayer'),
    jobsPerMinutePerPayer: max('perMinutePerPayer'),
    contractWalletPerMinute: max('contractWalletPerMinute'),
    mismatches: {
      max: max('mismatchesPerPayment'),
      closedMs: Number(/for (\d+) ms/.exec(row('mismatchesPerPayment')?.meaning ?? '')?.[1]),
    },
    caughtUpWaitMs: max('answerWaitMs'),
    generousRateFactor: max('canaryPerMinutePerClientAddress') / max('perMinutePerClientAddress'),
    answerBudgetMs: max('answerMs') - max('answerWaitMs'),
    targetQuotaAllPayersFactor: max('perTargetHostOfAll') / max('perTargetHost'),
    authorizationSeconds: { min: row('authorizationSeconds')?.min, max: max('authorizationSeconds') },
    handoff: {
      actions: { min: row('handoffActions')?.min, max: max('handoffActions') },
      textMaxLength: max('handoffTextLength'),
      selectorMaxLength: max('handoffSelectorLength'),
      validMs: max('handoffValidMs'),
    },
    schedule: {
      nextRuns: max('scheduleNextRuns'),
      timezoneMaxLength: max('scheduleTimezoneLength'),
      runAtMaxLength: max('scheduleRunAtLength'),
    },
    // These are the service's own working.
    leaseMarginMs: LIMITS.leaseMarginMs,
    recoveryGraceMs: LIMITS.recoveryGraceMs,
  };
  assert.deepEqual(told, LIMITS);
});

test('the longest call is every step at its longest, and no answer is later than its budget', () => {
  const told = (facilitatorTimeoutMs: number | null) => {
    const { limits } = capabilitiesDocument(factsWith({ facilitatorTimeoutMs }));
    const max = (name: string) => limits.find((limit) => limit.name === name)?.max;
    return [max('callMs'), max('answerMs')];
  };
  // Look-up 2 s, three attempts of 12 s, two waits of 5 s, the links 1 s; a payment is verified and settled.
  const freeMs = 2000 + 3 * 12_000 + 2 * 5000 + 1000;
  assert.deepEqual(told(null), [freeMs, 111_000]);
  assert.deepEqual(told(20_000), [freeMs + 2 * 20_000, 111_000]);
  assert.deepEqual(told(40_000), [111_000, 111_000]);
});

test('the canary: free to call directly; as a target told of only where it can be one, and at what cost', () => {
  for (const [baseUrl, isTarget] of [
    ['https://relay.example', true],
    ['http://127.0.0.1:3402', false],
  ] as const) {
    const facts = factsWith({ baseUrl });
    for (const text of [
      capabilitiesDocument(facts).doesNot.join(),
      quickstartDocument(facts).callFlow.join(),
      guidanceText(facts),
      llmsText(facts),
    ]) {
      assert.match(text, /POST \/api\/canary\/echo is free to call directly/);
      const target =
        /As the target of an execution.*EGRESS_DENY_CIDRS.*policy check.*costs what any call costs/;
      assert.equal(target.test(text), isTarget, text);
      assert.equal(/test target|one address of this service/.test(text), isTarget, text);
    }
  }
});

test('which targets must not get duplicates is told in one way', () => {
  const rule = 'cannot safely receive duplicate attempts without idempotency (retry.attempts above 1';
  const { avoidWhen } = quickstartDocument(factsWith()).decisionRules;
  for (const text of [avoidWhen.join(), guidanceText(factsWith()), llmsText(factsWith())]) {
    assert.equal(text.split(rule).length, 2, text);
    assert.equal(text.match(/duplicate/g)?.length, 1, text);
  }
});

test('the capabilities tell quota, rate and retention of this deployment', () => {
  const facts = factsWith({
    policyMode: 'blocklist-quota',
    targetQuota: { windowMs: 61_000, maxRequests: 23 },
    rateLimitPerMinute: 47,
    maxInFlight: 19,
    retentionDays: { jobs: 3, receipts: 11 },
  });
  const { targetPolicy, limits, retention } = capabilitiesDocument(facts);
  assert.deepEqual(targetPolicy.quota, facts.targetQuota);
  const max = (name: string) => limits.find((limit) => limit.name === name)?.max;
  assert.deepEqual(
    [max('perTargetHost'), max('perTargetHostOfAll'), max('perMinutePerClientAddress'), max('inFlight')],
    [23, 230, 47, 19],
  );
  const { jobsDays, receiptsDays, decisionsDays } = retention;
  assert.deepEqual([jobsDays, receiptsDays, decisionsDays], [3, 11, 11]);
  const open = capabilitiesDocument(factsWith()).limits;
  assert.equal(
    open.some(({ name }) => name === 'perTargetHost'),
    false,
  );
  assert.equal(new Set(open.map(({ name }) => name)).size, open.length);
});

test('the secrets policy names what must never be sent and what is never stored', () => {
  const { neverSend, notStored, id, status } = secretsPolicyDocument(factsWith());
  assert.deepEqual([id, status], ['secrets.policy', 'policy-only']);
  const never = neverSend.join('; ');
  for (const word of ['Wallet private keys', 'Seed phrases', 'Database URLs', 'Long-lived admin credentials'])
    assert.ok(never.includes(word), word);
  const unstored = notStored.join('; ');
  for (const word of ['URL', 'Header names and values', 'bodies', 'idempotencyKey', 'payment signature'])
    assert.ok(unstored.includes(word), word);
});
