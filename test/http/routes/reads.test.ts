import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { type HealthFacts, healthReport } from '#src/domain/monitoring/health.ts';
import { Fault, refused } from '#src/domain/refusal.ts';
import { ALL_WELL } from '#test/support/given/all-well.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import {
  BASE,
  DECISION,
  fakeWorld,
  JOB,
  JWS,
  job,
  monitoringOf,
  proofRecord,
  RECEIPT,
  receipt,
  report,
  running,
  stats,
} from '#test/support/world/http-deps.ts';

const LINKS = {
  job: `${BASE}/api/jobs/${JOB}`,
  receipt: `${BASE}/api/receipts/${RECEIPT}`,
  verifyJob: `${BASE}/api/verify/jobs/${JOB}`,
  verifyReceipt: `${BASE}/api/verify/receipts/${RECEIPT}`,
};
const MONITORING = '/api/monitoring/executions';
const UNKNOWN_DECISION = DECISION.replace(/d$/, 'e');

test('a job shows the fields of the contract and nothing more that a row may hold', async () => {
  const stray = {
    ...job(),
    payment: { payer: 'canary' },
    origin: 'canary',
    attemptLog: [{ ...job().attemptLog[0], address: 'canary' }],
  };
  const world = fakeWorld({ reads: { job: { find: async () => stray as never } } });
  const { status, body } = await clientOf(world).get(`/api/jobs/${JOB}`);
  assert.equal(status, 200);
  assert.deepEqual(body, { ...job(), links: { ...LINKS, proof: `${BASE}/proof/${JOB}` } });
});

test('a running job has no receipt links', async () => {
  const world = fakeWorld({ reads: { job: { find: async () => running() } } });
  const { body } = await clientOf(world).get(`/api/jobs/${JOB}`);
  const { links } = body as { links: unknown };
  assert.deepEqual(links, { ...LINKS, receipt: null, verifyReceipt: null, proof: `${BASE}/proof/${JOB}` });
});

test('a receipt shows its payload, its JWS, whether it verified and the checkpoint that it is in', async () => {
  const found = await receipt({ checkpoint: 'the newest checkpoint with it' });
  const receipts = { find: async () => found, countUnverified: async () => 0 };
  const { body } = await clientOf(fakeWorld({ reads: { receipt: receipts } })).get(
    `/api/receipts/${RECEIPT}`,
  );
  const { jobId: _, decisionId: __, signedAt: ___, ...shown } = found;
  assert.deepEqual(body, { ...shown, links: { ...LINKS, proof: `${BASE}/proof/${JOB}` } });
  assert.equal((body as { jws: string }).jws, JWS);
});

test('trust: how the transparency log stands is a component, where there is one', async () => {
  const of = async (world: ReturnType<typeof fakeWorld>) => {
    const { body } = await clientOf(world).get('/api/trust');
    const { trustComponents } = body as { trustComponents: { name: string; value: unknown }[] };
    return trustComponents.find(({ name }) => name === 'log_checkpoint')?.value;
  };
  const standing = (ageMs: number) => ({ checkpointStanding: () => ({ ageMs, problem: null }) });
  const shown = [of(fakeWorld()), of(fakeWorld(standing(60_000))), of(fakeWorld(standing(60_001)))];
  assert.deepEqual(await Promise.all(shown), [undefined, true, false]);
});

test('trust: which witnesses refuse and why; absent where the log has none', async () => {
  const of = async (world: ReturnType<typeof fakeWorld>) =>
    ((await clientOf(world).get('/api/trust')).body as { witnesses?: unknown }).witnesses;
  const refusal = 'states_larger_size_without_proof';
  const known = { configured: 2, quorum: 'q', lastCosignedAt: '2026-01-01T00:00:00.000Z', lagSeconds: 3 };
  const witnesses = [
    { name: 'w1', refusal, cosignedAt: null },
    { name: 'w2', refusal: null, cosignedAt: known.lastCosignedAt },
  ];
  const shown = await of(fakeWorld({ witnesses: () => ({ ...known, witnesses }) }));
  assert.deepEqual(shown, { ...known, refusing: [{ name: 'w1', reason: refusal }] });
  assert.equal(await of(fakeWorld()), undefined);
});

test('a miss is 404 once the read models have reached the head of the log', async () => {
  const none = { find: async () => null };
  const receipts = { ...none, countUnverified: async () => 0 };
  const world = fakeWorld({
    reads: { job: none, receipt: receipts },
    verifyJob: async () => refused('job_not_found', 'no such job'),
    verifyReceipt: async () => refused('receipt_not_found', 'no such receipt'),
  });
  const client = clientOf(world);
  for (const [path, expected] of [
    [`/api/jobs/${JOB}`, 'job_not_found'],
    [`/api/verify/jobs/${JOB}`, 'job_not_found'],
    [`/api/receipts/${RECEIPT}`, 'receipt_not_found'],
    [`/api/verify/receipts/${RECEIPT}`, 'receipt_not_found'],
    [`/api/decisions/${UNKNOWN_DECISION}`, 'decision_not_found'],
  ] as const) {
    const { status, code } = await errorOf(await client.call(path));
    assert.deepEqual([status, code], [404, expected]);
  }
});

test('a miss before that is read_models_unavailable with Retry-After', async () => {
  const world = fakeWorld({
    reads: { job: { find: async () => null } },
    verifyJob: async () => refused('receipt_not_ready', 'not yet'),
    progress: { reachedHead: async () => false },
  });
  const paths = [`/api/jobs/${JOB}`, `/api/verify/jobs/${JOB}`, `/proof/${JOB}`];
  for (const path of [...paths, `/api/decisions/${UNKNOWN_DECISION}`]) {
    const response = await clientOf(world).call(path);
    assert.equal(response.headers.get('retry-after'), '1');
    const { status, code } = await errorOf(response);
    assert.deepEqual([status, code], [503, 'read_models_unavailable']);
  }
});

test('what the wait for the head brought is found', async () => {
  for (const reached of [true, false]) {
    let there = false;
    const world = fakeWorld({
      reads: { job: { find: async () => (there ? job() : null) } },
      verifyJob: async () => (there ? report() : refused('receipt_not_ready', 'not yet')),
      progress: {
        async reachedHead() {
          there = true;
          return reached;
        },
      },
    });
    const client = clientOf(world);
    assert.equal((await client.call(`/api/jobs/${JOB}`)).status, 200);
    there = false;
    assert.equal((await client.call(`/api/verify/jobs/${JOB}`)).status, 200);
  }
});

test('a job that its row shows as running is answered only at the head, as it is there', async () => {
  const running = { ...job(), status: 'running' as const, receiptId: null, responseOk: false };
  for (const [reached, finished, expected] of [
    [true, true, [200, 'succeeded']],
    [true, false, [200, 'running']],
    [false, false, [503, undefined]],
  ] as const) {
    let asked = false;
    const world = fakeWorld({
      reads: { job: { find: async () => (asked && finished ? job() : running) } },
      progress: {
        async reachedHead() {
          asked = true;
          return reached;
        },
      },
    });
    const response = await clientOf(world).call(`/api/jobs/${JOB}`);
    const { status } = (await response.json()) as { status?: string };
    assert.deepEqual([response.status, status], expected);
  }
});

test('what is found at once waits for nothing', async () => {
  const world = fakeWorld({ progress: { reachedHead: () => Promise.reject(new Error('asked')) } });
  const client = clientOf(world);
  for (const path of [
    `/api/jobs/${JOB}`,
    `/api/receipts/${RECEIPT}`,
    `/api/verify/jobs/${JOB}`,
    `/proof/${RECEIPT}`,
  ]) {
    assert.equal((await client.call(path)).status, 200);
  }
});

test('read models that are away are 503 read_models_unavailable everywhere', async () => {
  const away = () => Promise.reject(new Fault('read_models_unavailable', 'The read models are unavailable.'));
  const world = fakeWorld({
    reads: {
      job: { find: away },
      receipt: { find: away, countUnverified: away },
      proof: { recent: away, recentFailures: away },
      monitoring: { summary: away, totals: away, series: away },
      decision: { find: away, recent: away },
      trust: { receipts: away, payments: away },
      store: { counts: away },
    },
    verifyJob: away,
  });
  const client = clientOf(world);
  for (const path of [
    `/api/jobs/${JOB}`,
    `/api/receipts/${RECEIPT}`,
    `/api/verify/jobs/${JOB}`,
    '/api/proofs/recent',
    '/api/decisions/recent',
    `/api/decisions/${DECISION}`,
    MONITORING,
    '/api/trust',
    `/proof/${JOB}`,
  ]) {
    const response = await client.call(path);
    assert.equal(response.headers.get('retry-after'), '1', path);
    const { status, code } = await errorOf(response);
    assert.deepEqual([status, code], [503, 'read_models_unavailable'], path);
  }
});

test('a proof report is answered as it is; receipt_not_ready is 409', async () => {
  const failed = report({ ok: false, checks: [{ name: 'signature_valid', ok: false }] });
  const client = clientOf(
    fakeWorld({
      verifyReceipt: async () => failed,
      verifyJob: async () => refused('receipt_not_ready', 'not yet'),
    }),
  );
  assert.deepEqual((await client.get(`/api/verify/receipts/${RECEIPT}`)).body, failed);
  const response = await client.call(`/api/verify/jobs/${JOB}`);
  const { status, code } = await errorOf(response);
  assert.deepEqual([status, code], [409, 'receipt_not_ready']);
});

test('recent proofs: limit 1 to 50, default 10, nothing else taken for it', async () => {
  const asked: number[] = [];
  const recent = async (limit: number) => {
    asked.push(limit);
    return Array.from({ length: limit }, () => proofRecord());
  };
  const reads = { proof: { recent, recentFailures: async () => [] } };
  // No answer grows old.
  const client = clientOf(fakeWorld({ reads, clock: { ...systemClock(), monotonic: () => 0 } }));
  for (const [query, length] of [
    ['', 10],
    ['?limit=1', 1],
    ['?limit=50', 50],
    ['?other=1', 10],
  ] as const) {
    const { status, body } = await client.get(`/api/proofs/recent${query}`);
    assert.deepEqual([status, (body as { proofs: unknown[] }).proofs.length], [200, length]);
  }
  assert.deepEqual(asked, [50], 'one query for all lengths');
  for (const text of [
    '0',
    '51',
    '-1',
    '1.5',
    '1e1',
    '0x10',
    ' 5',
    '+5',
    '',
    'ten',
    '5&limit=5',
    '1'.repeat(400),
    '%FF',
  ]) {
    const { status, code, details } = await errorOf(await client.call(`/api/proofs/recent?limit=${text}`));
    assert.deepEqual([status, code], [400, 'invalid_request'], text);
    assert.deepEqual(details, [{ path: '/limit', message: 'Expected one integer from 1 to 50' }]);
  }
  assert.equal(asked.length, 1);
});

test('recent proofs name what they leave out, and show nothing more', async () => {
  const stray = { ...proofRecord(), payer: 'canary', completedAt: 'canary' };
  const client = clientOf(
    fakeWorld({ reads: { proof: { recent: async () => [stray], recentFailures: async () => [] } } }),
  );
  const { body } = await client.get('/api/proofs/recent');
  const { ok, redactionPolicy, proofs } = body as {
    ok: boolean;
    redactionPolicy: { redactedFields: string[] };
    proofs: unknown[];
  };
  assert.equal(ok, true);
  assert.deepEqual(redactionPolicy.redactedFields, [
    'targetUrl',
    'requestHeaders',
    'requestBody',
    'responseHeaders',
    'responseBody',
    'requestHash',
    'responseHash',
    'receiptSignature',
    'idempotencyKey',
    'payer',
  ]);
  assert.deepEqual(proofs, [{ ...proofRecord(), links: LINKS }]);
});

test('monitoring: the summary, its attention, this process and the lag of the read models', async () => {
  const client = clientOf(fakeWorld({ progress: { lag: () => ({ lagEvents: null, lagMs: 30_001 }) } }));
  const { body } = await client.get(`${MONITORING}?windowMs=60000`);
  const { process, redactionPolicy, series, ...shown } = body as {
    process: Record<string, number>;
    redactionPolicy: object;
    series: unknown;
  };
  assert.deepEqual(shown, {
    ok: false,
    status: 'attention',
    windowMs: 60_000,
    attention: ['projection_lag'],
    failureRate: 0.25,
    stats,
    durations: null,
    recentFailures: [{ ...proofRecord(), links: LINKS }],
    projection: { lagEvents: null, lagMs: 30_001 },
  });
  assert.deepEqual(Object.keys(process), ['uptimeMs', 'requests', 'inFlight', 'p50Ms', 'p99Ms']);
  // This call itself; the next one follows the description, which the client looked up to check the answer.
  assert.deepEqual([process.requests, process.inFlight], [1, 1]);
  const again = (await client.get(MONITORING)).body as { process: Record<string, number> };
  assert.deepEqual([again.process.requests, again.process.inFlight], [3, 1]);
  assert.ok('redactedFields' in redactionPolicy);
  // Of what is in these, monitoring.test.ts speaks.
  assert.ok(Array.isArray(series));
});

test('monitoring: windowMs 60000 to 30 days, default one day', async () => {
  const client = clientOf(fakeWorld());
  for (const [query, windowMs, buckets] of [
    ['', 86_400_000, 97],
    ['?windowMs=60000', 60_000, 2],
    ['?windowMs=60001', 120_000, 3],
    ['?windowMs=2592000000', 2_592_000_000, 91],
  ] as const) {
    const { body } = await client.get(MONITORING + query);
    const shown = body as { ok: boolean; windowMs: number; series: unknown[] };
    assert.deepEqual([shown.ok, shown.windowMs, shown.series.length], [true, windowMs, buckets], query);
  }
  for (const text of ['59999', '2592000001', '1h']) {
    assert.equal((await client.call(`${MONITORING}?windowMs=${text}`)).status, 400);
  }
});

test('attention has each of its reasons', async () => {
  const receipts = { find: async () => null, countUnverified: async () => 1 };
  const cases = [
    fakeWorld({ reads: { monitoring: monitoringOf({ ...stats, recentSucceeded: 2, recentFailed: 2 }) } }),
    fakeWorld({ reads: { monitoring: monitoringOf(stats, { overdue: 1 }) } }),
    fakeWorld({ reads: { receipt: receipts } }),
    fakeWorld({ progress: { lag: () => ({ lagEvents: 1, lagMs: 30_001 }) } }),
  ];
  for (const world of cases) {
    for (const path of [MONITORING, '/api/trust']) {
      const { body } = await clientOf(world).get(path);
      assert.equal((body as { status: string }).status, 'attention');
    }
  }
});

test('trust: measured facts, the score made of them, always ok', async () => {
  const { body } = await clientOf(fakeWorld()).get('/api/trust');
  const { trustScore, trustComponents, trustSignals, ...shown } = body as Record<string, unknown>;
  assert.deepEqual(shown, {
    ok: true,
    status: 'ok',
    x402: { enabled: false, scheme: 'exact', network: 'eip155:8453', price: '$0.003' },
    storage: { driver: 'sqlite+pglite', durable: true, jobs: 9, receipts: 8 },
    execution: { windowMs: 86_400_000, recentFailureRate: 0.25, stats },
    payments: { charged: 9, served: 6, refunded: 2, open: 1 },
    proofExamples: { recentVerifiedProofs: 4, latestVerifiedProofAt: proofRecord().updatedAt },
  });
  assert.equal(trustScore, 76);
  assert.deepEqual(
    (trustComponents as { name: string }[]).map(({ name }) => name),
    ['payment_enforced', 'durable_storage', 'recent_success_rate', 'receipts_verified'],
  );
  assert.ok((trustSignals as string[]).length >= 4);
});

test('health is 503 only when no call can be executed; other parts show inside a 200', async () => {
  const asked = async (changes: Partial<HealthFacts>, settings = {}) => {
    const report = healthReport({ ...ALL_WELL, ...changes });
    const { status, body } = await clientOf(fakeWorld({ settings, health: async () => report })).get(
      '/health',
    );
    return { status, body: body as HealthBody, report };
  };
  const well = await asked({});
  const base = { service: 'webhook-relay', version: '0.1.0', mode: 'demo' };
  assert.deepEqual([well.status, well.body], [200, { ok: true, ...base, checks: well.report.checks }]);
  const limping = await asked(
    {
      readModels: { ok: false, problem: 'unavailable' },
      facilitator: { ok: false, problem: 'login_refused' },
    },
    { mode: 'x402' },
  );
  assert.deepEqual(
    [limping.status, limping.body],
    [200, { ok: false, ...base, mode: 'x402', checks: limping.report.checks }],
  );
  const { ok, reason, message } = limping.body.checks.readModels ?? {};
  assert.deepEqual([ok, reason, typeof message], [false, 'unavailable', 'string']);
  const idle: readonly Partial<HealthFacts>[] = [
    { eventLog: { ok: false, problem: 'not_writable' } },
    { signingKey: { ok: false, validFrom: null } },
    { checkpoint: { problem: 'checkpoint_forgotten', waitingMs: 0 } },
  ];
  for (const changes of idle) {
    const gone = await asked(changes);
    assert.deepEqual([gone.status, gone.body.ok, gone.body.checks], [503, false, gone.report.checks]);
  }
  const exempted = await asked({}, { egressExemption: true });
  assert.equal(exempted.body.egressExemption, true);
});

test('health shows of a part what the schema has, and nothing else', async () => {
  const report = healthReport({ ...ALL_WELL, readModels: { ok: false, problem: 'unavailable' } });
  const readModels = { ...report.checks.readModels, path: '/canary' };
  const world = fakeWorld({ health: async () => ({ ...report, checks: { ...report.checks, readModels } }) });
  const { body } = await clientOf(world).get('/health');
  assert.deepEqual((body as HealthBody).checks, report.checks);
});

type HealthBody = {
  readonly ok: boolean;
  readonly egressExemption?: boolean;
  readonly checks: Readonly<
    Record<string, { readonly ok: boolean; readonly reason?: string; readonly message?: string }>
  >;
};

test('liveness and keys: makes no outbound call; the keys are those of the log', async () => {
  const dead = fakeWorld({ health: () => Promise.reject(new Error('asked')) });
  const live = await clientOf(dead).get('/health/live');
  assert.deepEqual([live.status, live.body], [200, { ok: true, service: 'webhook-relay', version: '0.1.0' }]);
  const key = { kty: 'OKP', crv: 'Ed25519', kid: 'key-1', x: 'x'.repeat(43) } as const;
  const keys = await clientOf(fakeWorld({ jwks: async () => ({ keys: [key] }) })).get(
    '/.well-known/jwks.json',
  );
  assert.deepEqual([keys.status, keys.body], [200, { keys: [key] }]);
  assert.equal(keys.headers.get('cache-control'), 'public, max-age=60');
});
