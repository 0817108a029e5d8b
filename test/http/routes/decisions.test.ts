import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DecisionRecord } from '#projections/decision/query.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { Fault, refused } from '#src/domain/refusal.ts';
import type { Quota } from '#src/ports/quota.ts';
import type { DecideInput } from '#src/usecases/decisions/decide-webhook.ts';
import { decisionRecorded } from '#test/support/given/given-events.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import {
  BASE,
  DECISION,
  decided,
  decisionRecord,
  fakeWorld,
  JOB,
  RECEIPT,
} from '#test/support/world/http-deps.ts';

const DECIDE = '/api/decide/webhook';
const ACTION = { url: 'https://a.example/hook', body: { text: 'hi' } };
const POLICY = { maxPriceUsd: '0.01', allowedNetworks: ['eip155:8453'] };
const { data: event } = decisionRecorded();

const FACTS = {
  price: '0.003',
  network: 'eip155:8453',
  payTo: '0x1111111111111111111111111111111111111111',
  trustScore: 97.5,
  recentFailureRate: 0.125,
  policyVerdict: 'allowed',
};
const SHOWN = {
  decisionId: DECISION,
  recommendation: 'pay_and_execute',
  confidence: 'high',
  blockingIssues: [],
  warnings: [],
  reasons: event.reasons,
  actionHash: event.actionHash,
  policyHash: event.policyHash,
  facts: FACTS,
  createdAt: event.createdAt,
  expiresAt: event.expiresAt,
};
const PENDING = {
  status: 'pending_execution',
  jobId: null,
  receiptId: null,
  receiptVerified: false,
  responseStatus: null,
  errorCategory: null,
  attempts: 0,
};
const OWN_LINKS = {
  decision: `${BASE}/api/decisions/${DECISION}`,
  execute: `${BASE}/api/execute/guided-webhook`,
};
const NO_JOB = { job: null, receipt: null, verifyJob: null, verifyReceipt: null, proof: null };
const JOB_LINKS = {
  job: `${BASE}/api/jobs/${JOB}`,
  receipt: `${BASE}/api/receipts/${RECEIPT}`,
  verifyJob: `${BASE}/api/verify/jobs/${JOB}`,
  verifyReceipt: `${BASE}/api/verify/receipts/${RECEIPT}`,
  proof: `${BASE}/proof/${JOB}`,
};

test('a decision is answered whole: six facts, nothing of the buyer policy, and links', async () => {
  const asked: DecideInput[] = [];
  const world = fakeWorld({
    async decide(input) {
      asked.push(input);
      return decided();
    },
  });
  const client = clientOf(world);
  const response = await client.post(DECIDE, { action: ACTION, buyerPolicy: POLICY });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.deepEqual(await response.json(), { ...SHOWN, outcome: PENDING, links: { ...OWN_LINKS, ...NO_JOB } });
  await client.post(DECIDE, { action: ACTION });
  assert.deepEqual(asked, [
    { action: ACTION, hasKey: false, buyerPolicy: POLICY },
    { action: ACTION, hasKey: false, buyerPolicy: {} },
  ]);
});

test('a target that would be refused is a decision, not an error', async () => {
  const issue = { code: 'unsafe_target', message: 'As things are, it would be refused.' };
  const decision = decided();
  const refusing = {
    ...decision,
    recommendation: 'do_not_pay' as const,
    blockingIssues: [issue],
    reasons: [issue],
    facts: { ...decision.facts, policyVerdict: 'unsafe_target', payTo: null, trustScore: null },
  };
  const world = fakeWorld({ decide: async () => refusing });
  const response = await clientOf(world).post(DECIDE, { action: { url: 'https://127.0.0.1/' } });
  const body = (await response.json()) as typeof refusing;
  assert.equal(response.status, 200);
  assert.deepEqual([body.recommendation, body.blockingIssues], ['do_not_pay', [issue]]);
});

test('the answer does not wait for the read models', async () => {
  const refuse = async () => assert.fail('the answer asked for the read models');
  const world = fakeWorld({ progress: { caughtUp: refuse, reachedHead: refuse } });
  assert.equal((await clientOf(world).post(DECIDE, { action: ACTION })).status, 200);
});

test('a body that does not fit is 400 and decides nothing: unknown names, bad actions, bad policies', async () => {
  let asked = 0;
  const world = fakeWorld({
    async decide() {
      asked++;
      return decided();
    },
  });
  const client = clientOf(world);
  for (const body of [
    {},
    ACTION,
    { action: {} },
    { action: ACTION, more: 1 },
    { action: { ...ACTION, more: 1 } },
    { action: { ...ACTION, retry: { attempts: 4 } } },
    { action: { url: 'http://a.example/' } },
    { action: ACTION, buyerPolicy: null },
    { action: ACTION, buyerPolicy: { more: 1 } },
    { action: ACTION, buyerPolicy: { maxPriceUsd: 0.01 } },
    { action: ACTION, buyerPolicy: { maxPriceUsd: '-1' } },
    { action: ACTION, buyerPolicy: { minTrustScore: 101 } },
    { action: ACTION, buyerPolicy: { allowedNetworks: [''] } },
  ]) {
    const { status, code } = await errorOf(await client.post(DECIDE, body));
    assert.deepEqual([status, code], [400, 'invalid_request'], JSON.stringify(body));
  }
  assert.equal((await errorOf(await client.post(DECIDE, '{'))).code, 'invalid_json');
  assert.equal(asked, 0);
});

test('refusals and faults of the use case keep their codes', async () => {
  const answered = async (decide: () => Promise<never> | ReturnType<typeof refused>) =>
    errorOf(await clientOf(fakeWorld({ decide: async () => decide() })).post(DECIDE, { action: ACTION }));
  const malformed = await answered(() => refused('invalid_request', 'A header comes twice.'));
  assert.deepEqual([malformed.status, malformed.code], [400, 'invalid_request']);
  const busy = await answered(() => refused('too_many_in_flight', 'All look-ups are taken.'));
  assert.deepEqual([busy.status, busy.code], [429, 'too_many_in_flight']);
  for (const code of ['event_log_unavailable', 'read_models_unavailable'] as const) {
    const away = await answered(() => Promise.reject(new Fault(code, 'Nothing was decided.')));
    assert.deepEqual([away.status, away.code], [503, code]);
  }
});

test('a body of exactly 16 kB is taken, one byte more is body_too_large', async () => {
  const sized = (bytes: number) => {
    const empty = JSON.stringify({ action: { ...ACTION, body: '' } });
    return JSON.stringify({ action: { ...ACTION, body: 'x'.repeat(bytes - empty.length) } });
  };
  const client = clientOf(fakeWorld());
  assert.equal((await client.post(DECIDE, sized(16 * 1024))).status, 200);
  const { status, code } = await errorOf(await client.post(DECIDE, sized(16 * 1024 + 1)));
  assert.deepEqual([status, code], [413, 'body_too_large']);
});

/** Fixed windows that end on demand. */
function windows() {
  const taken = new Map<string, number>();
  const quota: Quota = {
    async take({ name, maxRequests, windowMs }, key) {
      const count = (taken.get(`${name} ${key}`) ?? 0) + 1;
      taken.set(`${name} ${key}`, count);
      const remaining = Math.max(0, maxRequests - count);
      return { allowed: count <= maxRequests, limit: maxRequests, remaining, resetMs: windowMs / 2 };
    },
    look: () => Promise.reject(new Error('not asked')),
  };
  const end = (name: string) => {
    for (const key of taken.keys()) if (key.startsWith(`${name} `)) taken.delete(key);
  };
  return { quota, taken, end };
}

const limitHeaders = ({ headers }: Response) =>
  ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'ratelimit-policy', 'retry-after'].map(
    (name) => headers.get(name),
  );

test('10 decisions a minute and 200 a day from one address; the limit nearest to its end is reported', async () => {
  const { quota, taken, end } = windows();
  const client = clientOf(fakeWorld({ quota }));
  const decide = () => client.post(DECIDE, { action: ACTION });
  assert.deepEqual(limitHeaders(await decide()), ['10', '9', '30', '10;w=60', null]);
  for (let n = 2; n <= 10; n++) assert.equal((await decide()).status, 200);
  const eleventh = await decide();
  assert.deepEqual(limitHeaders(eleventh), ['10', '0', '30', '10;w=60', '30']);
  assert.deepEqual((await errorOf(eleventh)).code, 'rate_limited');
  assert.equal(
    taken.get('client-decide-daily 198.51.100.7'),
    10,
    'a call refused by the minute costs no day',
  );

  for (let n = 11; n <= 200; n++) {
    if (n % 10 === 1) end('client-decide');
    const response = await decide();
    assert.equal(response.status, 200, `${n}`);
    if (n === 192) assert.deepEqual(limitHeaders(response), ['10', '8', '30', '10;w=60', null]);
  }
  end('client-decide');
  const over = await decide();
  assert.deepEqual(limitHeaders(over), ['200', '0', '43200', '200;w=86400', '43200']);
  assert.deepEqual((await errorOf(over)).code, 'rate_limited');
});

test('the day is reported where less of it is left than of the minute', async () => {
  const { quota, taken } = windows();
  taken.set('client-decide-daily 198.51.100.7', 194);
  const response = await clientOf(fakeWorld({ quota })).post(DECIDE, { action: ACTION });
  assert.deepEqual(limitHeaders(response), ['200', '5', '43200', '200;w=86400', null]);
});

test('a decision is read with what became of it', async () => {
  const { status, body } = await clientOf(fakeWorld()).get(`/api/decisions/${DECISION}`);
  assert.equal(status, 200);
  const { outcome } = decisionRecord();
  assert.deepEqual(body, { ...SHOWN, outcome, links: { ...OWN_LINKS, ...JOB_LINKS } });
});

test('a decision under way links to its job and to no receipt', async () => {
  const outcome = { ...PENDING, status: 'running' as const, jobId: JOB };
  const find = async () => decisionRecord({ outcome });
  const { reads } = fakeWorld();
  const world = fakeWorld({ reads: { decision: { ...reads.decision, find } } });
  const { body } = await clientOf(world).get(`/api/decisions/${DECISION}`);
  const shown = body as { outcome: unknown; links: unknown };
  assert.deepEqual(shown.outcome, outcome);
  assert.deepEqual(shown.links, { ...OWN_LINKS, ...JOB_LINKS, receipt: null, verifyReceipt: null });
});

test('an id that was never given out is answered without asking anyone', async () => {
  const asked = () => Promise.reject(new Error('asked'));
  const world = fakeWorld({ reads: { decision: { find: asked, recent: asked } } });
  for (const id of ['dec_1', JOB, 'recently', `${DECISION}0`]) {
    const { status, code } = await errorOf(await clientOf(world).call(`/api/decisions/${id}`));
    assert.deepEqual([status, code], [404, 'decision_not_found'], id);
  }
});

test('the list of decisions leaves out hashes, words and whatever else a row may hold, and says so', async () => {
  const issue = { code: 'price_over_max', message: 'canary' };
  const record: DecisionRecord = decisionRecord({
    recommendation: 'do_not_pay',
    blockingIssues: [issue],
    warnings: [{ code: 'headers_stripped', message: 'canary' }],
    reasons: [issue],
    actionHash: 'canary',
    policyHash: 'canary',
  });
  const stray = { ...record, buyerPolicy: 'canary', facts: { ...record.facts, method: 'canary' } };
  const limits: number[] = [];
  const world = fakeWorld({
    // No answer grows old.
    clock: { ...systemClock(), monotonic: () => 0 },
    reads: {
      decision: {
        find: async () => null,
        async recent(limit) {
          limits.push(limit);
          return [stray];
        },
      },
    },
  });
  const client = clientOf(world);
  const { status, body } = await client.get('/api/decisions/recent');
  assert.equal(status, 200);
  const { ok, redactionPolicy, decisions } = body as {
    ok: boolean;
    redactionPolicy: { redactedFields: string[] };
    decisions: unknown[];
  };
  assert.equal(ok, true);
  assert.deepEqual(redactionPolicy.redactedFields, [
    'targetUrl',
    'requestHeaders',
    'requestBody',
    'idempotencyKey',
    'actionHash',
    'policyHash',
    'buyerPolicy',
    'reasonMessages',
    'payer',
  ]);
  assert.ok(!JSON.stringify(body).includes('canary'));
  const { actionHash: _, policyHash: __, ...summary } = SHOWN;
  assert.deepEqual(decisions, [
    {
      ...summary,
      recommendation: 'do_not_pay',
      blockingIssues: [{ code: 'price_over_max' }],
      warnings: [{ code: 'headers_stripped' }],
      reasons: [{ code: 'price_over_max' }],
      outcome: record.outcome,
      links: { ...OWN_LINKS, ...JOB_LINKS },
      publicFieldsOnly: true,
    },
  ]);
  for (let limit = 1; limit <= 50; limit++) await client.get(`/api/decisions/recent?limit=${limit}`);
  assert.deepEqual(limits, [50], 'one query for all lengths');
  for (const query of ['limit=0', 'limit=51', 'limit=ten', 'limit=1&limit=2']) {
    const refusal = await errorOf(await client.call(`/api/decisions/recent?${query}`));
    assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_request'], query);
  }
});
