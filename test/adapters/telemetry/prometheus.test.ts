// Figures as Prometheus reads them: each has help and type, counts from 0, and no more series than it may have.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prometheusFigures } from '#src/adapters/telemetry/prometheus.ts';
import { ErrorCategory } from '#src/domain/event-fields.ts';
import { type HealthFacts, healthReport } from '#src/domain/monitoring/health.ts';
import type { NewEvent } from '#src/ports/event-log.ts';
import type { Figures, StateNow } from '#src/ports/telemetry.ts';
import { ALL_WELL } from '#test/support/given/all-well.ts';
import { PAYMENT_FIGURES, readFigures } from '#test/support/given/figures.ts';

const NOW: StateNow = {
  storage: 'sqlite+pglite',
  eventLog: { damagedEvents: 0, scrubbedAt: null },
  disk: null,
  checks: healthReport({ ...ALL_WELL, readModels: { ok: false, problem: 'unavailable' } }).checks,
  conditions: [{ part: 'readModels', code: 'unavailable' }],
  witnesses: null,
  checkpoint: { size: 9, signedAt: '2030-01-01T00:00:00.000Z', waitingMs: 2500 },
  executionsInFlight: 3,
  unclosableJobs: 2,
  lag: { lagEvents: 7, lagMs: 1500 },
  payments: null,
};
const figures = () => prometheusFigures({ version: '1.2.3', runtime: 'some 4' });
const read = async (of: Figures, now = NOW) => readFigures((await of.exposition(now)).text);
const event = (type: string, data: NewEvent['data']): NewEvent => ({ id: 'x', type, data, metadata: {} });
const store = (of: Figures, ...events: NewEvent[]) => of.appended('stored', 0.001, events);

test('figures: text of version 0.0.4, every name by the conventions', async () => {
  const of = figures();
  assert.equal((await of.exposition(NOW)).contentType, 'text/plain; version=0.0.4; charset=utf-8');
  const { types } = await read(of);
  assert.ok(types.size >= 15, `${types.size}`);
  for (const [name, type] of types) {
    assert.match(name, /^(http|relay|process)_[a-z_]+$/);
    assert.equal(name.endsWith('_total'), type === 'counter', name);
    if (type === 'histogram') assert.match(name, /_seconds$/);
  }
});

test('figures: the state is the current one', async () => {
  const of = figures();
  const seen = await read(of);
  const build = { version: '1.2.3', runtime: 'some 4', storage: 'sqlite+pglite' };
  assert.equal(seen.of('relay_build_info', build), 1);
  const up = (part: string) => seen.of('relay_part_up', { part });
  const parts = ['event_log', 'signing_key', 'transparency_log', 'read_models', 'projections', 'facilitator'];
  assert.deepEqual(parts.map(up), [1, 1, 1, 0, 1, null]);
  assert.deepEqual(seen.labels('relay_part_problem'), [{ part: 'read_models', reason: 'unavailable' }]);
  assert.equal(seen.of('relay_executions_in_flight'), 3);
  assert.equal(seen.of('relay_projection_lag_events'), 7);
  assert.equal(seen.of('relay_projection_lag_seconds'), 1.5);
  const started = seen.of('process_start_time_seconds') ?? 0;
  const age = Date.now() / 1000 - started;
  assert.ok(age > 0 && age < 3600, `${age}`);
  assert.ok((seen.of('process_resident_memory_bytes') ?? 0) > 1e6);
});

test('figures: the newest checkpoint: its size, when it was signed, how long leaves wait; absent where there is none', async () => {
  const of = figures();
  const names = ['size', 'timestamp_seconds', 'wait_seconds'].map((name) => `relay_checkpoint_${name}`);
  const seen = async (checkpoint: StateNow['checkpoint']) => {
    const now = await read(of, { ...NOW, checkpoint });
    return names.map((name) => now.of(name));
  };
  assert.deepEqual(await seen(NOW.checkpoint), [9, Date.UTC(2030, 0, 1) / 1000, 2.5]);
  assert.deepEqual(await seen({ size: 9, signedAt: null, waitingMs: 0 }), [9, null, 0]);
  assert.deepEqual(await seen(null), [null, null, null]);
});

test('figures: the disk of the embedded stores: what is unknown is absent', async () => {
  const of = figures();
  const names = [
    ...['relay_disk_free_bytes', 'relay_event_log_bytes', 'relay_read_models_bytes'],
    'relay_event_log_growth_bytes_per_day',
  ];
  const seen = async (disk: StateNow['disk']) => {
    const now = await read(of, { ...NOW, disk });
    return names.map((name) => now.of(name));
  };
  const disk = { freeBytes: 9e9, logBytes: 8e6, readModelsBytes: 4e6, growthBytesPerDay: 0 };
  assert.deepEqual(await seen(disk), [9e9, 8e6, 4e6, 0]);
  const young = { ...disk, readModelsBytes: null, growthBytesPerDay: null };
  assert.deepEqual(await seen(young), [9e9, 8e6, null, null]);
  assert.deepEqual(await seen(null), [null, null, null, null]);
});

test('figures: an unknown lag is absent, and present again once it is known', async () => {
  const of = figures();
  const unknown = await read(of, { ...NOW, lag: { lagEvents: null, lagMs: 31_000 } });
  assert.equal(unknown.of('relay_projection_lag_events'), null);
  assert.equal(unknown.of('relay_projection_lag_seconds'), 31);
  assert.equal((await read(of)).of('relay_projection_lag_events'), 7);
});

test('figures: a part that is not used has no series; a problem has one while it lasts', async () => {
  const of = figures();
  const seen = async (facilitator: HealthFacts['facilitator']) => {
    const { checks } = healthReport({ ...ALL_WELL, facilitator });
    const conditions =
      facilitator === null || facilitator.ok ? [] : [{ part: 'facilitator', code: facilitator.problem }];
    const now = await read(of, { ...NOW, checks, conditions });
    return [now.of('relay_part_up', { part: 'facilitator' }), now.labels('relay_part_problem')];
  };
  assert.deepEqual(await seen(null), [null, []]);
  assert.deepEqual(await seen({ ok: true }), [1, []]);
  for (const problem of ['no_answer', 'login_refused'] as const)
    assert.deepEqual(await seen({ ok: false, problem }), [0, [{ part: 'facilitator', reason: problem }]]);
  assert.deepEqual(await seen({ ok: true }), [1, []]);
});

test('figures: attempts and jobs count by outcome, each from 0', async () => {
  const of = figures();
  const categories = ErrorCategory.anyOf.map((one) => one.const);
  const before = await read(of);
  for (const outcome of ['succeeded', ...categories]) {
    assert.equal(before.of('relay_attempts_total', { outcome }), 0, outcome);
  }
  store(
    of,
    event('AttemptMade', { outcome: 'succeeded', errorCategory: null }),
    event('JobCompleted', { status: 'succeeded' }),
    event('ReceiptSigned', {}),
  );
  for (const errorCategory of categories) {
    store(of, event('AttemptMade', { outcome: 'failed', errorCategory }));
  }
  store(of, event('AttemptMade', { outcome: 'failed', errorCategory: 'of a later version' }));
  store(of, event('JobCompleted', { status: 'failed' }));
  const after = await read(of);
  for (const outcome of ['succeeded', ...categories, 'other']) {
    assert.equal(after.of('relay_attempts_total', { outcome }), 1, outcome);
  }
  assert.equal(after.of('relay_jobs_total', { status: 'succeeded' }), 1);
  assert.equal(after.of('relay_jobs_total', { status: 'failed' }), 1);
});

test('figures: settlements count by what was learnt, and whether at once or later', async () => {
  const of = figures();
  const rows: readonly (readonly [outcome: string, type: string, evidence: string | null])[] = [
    ['settled', 'PaymentSettled', 'facilitator'],
    ['settled_later', 'PaymentSettled', 'chain'],
    ['settled_later', 'PaymentSettled', 'operator'],
    ['rejected', 'PaymentRejected', 'facilitator'],
    ['rejected_later', 'PaymentRejected', 'chain'],
    ['rejected_later', 'PaymentRejected', 'operator'],
    ['unknown', 'SettlementUnknown', null],
    ['released', 'PaymentReleased', null],
    ['missing', 'PaymentMissing', null],
    ['corrected', 'SettlementCorrected', null],
  ];
  for (const [, type, evidence] of rows) store(of, event(type, { evidence }));
  store(of, event('PaymentReserved', {}), event('SettlementRetried', {}), event('IdempotencyKeyClaimed', {}));
  const seen = await read(of);
  const outcomes = seen
    .labels('relay_settlements_total')
    .map(({ outcome = '' }) => [outcome, seen.of('relay_settlements_total', { outcome })]);
  assert.deepEqual(Object.fromEntries(outcomes), {
    settled: 1,
    settled_later: 2,
    rejected: 1,
    rejected_later: 2,
    unknown: 1,
    released: 1,
    missing: 1,
    corrected: 1,
  });
});

test('figures: defects of the program count from 0', async () => {
  const of = figures();
  assert.equal((await read(of)).of('relay_internal_errors_total'), 0);
  of.internalError();
  assert.equal((await read(of)).of('relay_internal_errors_total'), 1);
});

test('figures: an append that was not acknowledged is timed, and counts for nothing else', async () => {
  const of = figures();
  for (const outcome of ['conflict', 'unknown', 'failed'] as const) {
    of.appended(outcome, 0.3, [event('JobCompleted', { status: 'succeeded' })]);
  }
  of.appended('stored', 0.003, []);
  const seen = await read(of);
  assert.equal(seen.of('relay_jobs_total', { status: 'succeeded' }), 0);
  for (const outcome of ['stored', 'conflict', 'unknown', 'failed']) {
    assert.equal(seen.of('relay_event_log_append_seconds_count', { outcome }), 1, outcome);
  }
  assert.equal(seen.of('relay_event_log_append_seconds_sum', { outcome: 'unknown' }), 0.3);
  const below = (le: string) => seen.of('relay_event_log_append_seconds_bucket', { outcome: 'stored', le });
  assert.deepEqual([below('0.0025'), below('0.005'), below('+Inf')], [0, 1, 1]);
});

test('figures: requests count by route, method and status, and are in flight until answered', async () => {
  const of = figures();
  const [one, two] = [of.requestBegun(), of.requestBegun()];
  assert.equal((await read(of)).of('http_requests_in_flight'), 2);
  one({ route: '/api/jobs/:id', method: 'GET', status: 404, seconds: 0.02 });
  two({ route: null, method: 'BREW', status: 404, seconds: 0.02 });
  const seen = await read(of);
  assert.equal(seen.of('http_requests_in_flight'), 0);
  assert.deepEqual(
    seen.labels('http_requests_total'),
    [
      { route: '/api/jobs/:id', method: 'GET', status: '404' },
      { route: 'none', method: 'other', status: '404' },
    ].map((labels) => Object.fromEntries(Object.entries(labels).sort())),
  );
  const timed = { route: '/api/jobs/:id', method: 'GET' };
  assert.equal(seen.of('http_request_duration_seconds_sum', timed), 0.02);
  assert.equal(seen.of('http_request_duration_seconds_bucket', { ...timed, le: '0.025' }), 1);
});

test('figures: methods that callers invent make no further series', async () => {
  const of = figures();
  const answer = (method: string) => of.requestBegun()({ route: null, method, status: 404, seconds: 0 });
  answer('BREW');
  const before = (await read(of)).lines;
  for (let i = 0; i < 200; i++) answer(`BREW${i}`);
  assert.equal((await read(of)).lines, before);
});

test('figures: two in one process are two', async () => {
  const [one, other] = [figures(), figures()];
  store(one, event('JobCompleted', { status: 'failed' }));
  assert.equal((await read(other)).of('relay_jobs_total', { status: 'failed' }), 0);
});

test('figures: payments, absent in demo mode', async () => {
  const of = figures();
  const demo = await read(of);
  const names = [
    'relay_payments_balanced',
    'relay_chain_reconciled_block',
    'relay_chain_reconciled_timestamp_seconds',
  ];
  for (const name of names) assert.equal(demo.of(name), null, name);
  const seen = await read(of, { ...NOW, payments: PAYMENT_FIGURES });
  for (const [sum, value] of Object.entries(PAYMENT_FIGURES.units))
    assert.equal(seen.of('relay_payment_units', { sum }), value, sum);
  assert.equal(seen.of('relay_payments_balanced'), 1);
  assert.equal(seen.of('relay_books_difference_units'), 0);
  assert.equal(seen.of('relay_payments_open', { state: 'missing' }), 1);
  assert.equal(seen.of('relay_payments_open_units', { state: 'refundable' }), 3000);
  assert.equal(seen.of('relay_payments_open_oldest_seconds', { state: 'refundable' }), 3600);
  assert.equal(seen.of('relay_payments_open_oldest_seconds', { state: 'unknown' }), 0);
  assert.equal(seen.of('relay_chain_reconciled_block'), 1060);
  assert.equal(seen.of('relay_chain_reconciled_timestamp_seconds'), 1_767_323_165);
  const gone = await read(of, NOW);
  assert.equal(gone.of('relay_books_difference_units'), null);
  assert.equal(gone.of('relay_payment_units', { sum: 'charged' }), null, 'unknown is not what it was');
  assert.equal(gone.of('relay_payments_open', { state: 'missing' }), null);
  const none = { ...PAYMENT_FIGURES, balanced: false, differenceUnits: 3000, reconciled: null };
  const unknown = await read(figures(), { ...NOW, payments: none });
  assert.equal(unknown.of('relay_payments_balanced'), 0);
  assert.equal(unknown.of('relay_books_difference_units'), 3000);
  assert.equal(unknown.of('relay_chain_reconciled_timestamp_seconds'), 0);
});
