// Given events, the rows: strict and whole, model by model.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { test } from 'node:test';
import type { Rows } from '#projections/fold.ts';
import { DURATION_BOUNDS_MS } from '#projections/monitoring/table.ts';
import { balancePayments } from '#test/support/given/books.ts';
import {
  commitment,
  JOB_ID,
  keyRetired,
  paymentMissing,
  paymentRefunded,
  paymentRejected,
  paymentReserved,
  paymentSettled,
  refundBegun,
  runFunded,
  runSkipped,
  SCHEDULE_ID,
  scheduleCancelled,
  scheduleDefined,
  schedulePaused,
} from '#test/support/given/given-events.ts';
import {
  appendAll,
  decisionAppend,
  decisionIdOf,
  type JobPlan,
  jobAppends,
  jobIdOf,
  PAY_AND_EXECUTE,
  PLAN,
  type PlannedAppend,
  RECEIPT_KEY_ID,
  receiptIdOf,
  recorded,
} from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { rowsAfter } from '#test/support/log/read-model-rows.ts';

async function given(...plans: readonly Partial<JobPlan>[]): Promise<Rows> {
  const log = memoryLog();
  for (const plan of plans) await appendAll(log, jobAppends({ ...PLAN, ...plan }));
  return rowsAfter(recorded(log));
}

const row = (rows: Rows, table: string, key: string) => rows.get(table)?.get(key)?.row ?? null;
const keys = (rows: Rows, table: string) =>
  [...(rows.get(table) ?? [])].flatMap(([key, stored]) => (stored === null ? [] : [key])).sort();

const T = (ms: number) => new Date(PLAN.startedAtMs + ms).toISOString();

test('job: a job that succeeded at its second attempt', async () => {
  const rows = await given({ seed: 7, answers: [503, 201], paid: true, decision: 7 });
  const found = row(rows, 'jobs', jobIdOf(7)) as Record<string, unknown>;
  const { payment, decisionId, targetCommitment, requestHash, responseHash, ...rest } = found;
  assert.deepEqual(rest, {
    id: jobIdOf(7),
    status: 'succeeded',
    method: 'DELETE',
    mode: 'x402',
    attempts: 2,
    attemptLog: [
      {
        number: 1,
        startedAt: T(0),
        completedAt: T(250),
        phase: 'body',
        sent: 'yes',
        status: 503,
        errorCategory: 'target_server_error',
        reason: 'http_status',
        timings: { dnsMs: 1.5, connectMs: 2, tlsMs: null, ttfbMs: null, totalMs: 250 },
      },
      {
        number: 2,
        startedAt: T(250),
        completedAt: T(500),
        phase: 'body',
        sent: 'yes',
        status: 201,
        errorCategory: null,
        reason: null,
        timings: { dnsMs: 1.5, connectMs: 2, tlsMs: null, ttfbMs: null, totalMs: 250 },
      },
    ],
    responseStatus: 201,
    errorCategory: null,
    receiptId: receiptIdOf(7),
    refund: null,
    createdAt: T(0),
    updatedAt: T(500),
  });
  assert.equal((payment as { payer: string }).payer, '0x2222222222222222222222222222222222222222');
  assert.match(String(decisionId), /^dec_/);
  const commitments = [targetCommitment, requestHash, responseHash];
  assert.equal(new Set(commitments).size, 3);
  for (const commitment of commitments) assert.match(String(commitment), /^[A-Za-z0-9_-]{43}$/);
});

test('job: a refund, without its payer; a refund of a job that never started makes no row', async () => {
  const log = memoryLog();
  await appendAll(log, jobAppends({ ...PLAN, seed: 7, paid: true }));
  const refund = (seed: number) => paymentRefunded({ jobId: jobIdOf(seed) });
  for (const seed of [7, 8]) await appendAll(log, [{ stream: `payment-${seed}`, events: [refund(seed)] }]);
  const rows = await rowsAfter(recorded(log));
  const { transaction, refundedAt } = refund(7).data;
  const found = row(rows, 'jobs', jobIdOf(7)) as Record<string, unknown>;
  assert.deepEqual(found.refund, { transaction, verified: true, refundedAt });
  assert.equal(row(rows, 'jobs', jobIdOf(8)), null);
});

test('job: running while its last attempt is under way, failed without an answer, interrupted', async () => {
  const rows = await given(
    { seed: 1, end: 'running' },
    { seed: 2, answers: [null] },
    { seed: 3, answers: [500, 200], end: 'interrupted_unknown' },
  );
  const of = (seed: number) => {
    const { status, attempts, responseStatus, responseHash, errorCategory, receiptId, payment } = row(
      rows,
      'jobs',
      jobIdOf(seed),
    ) as Record<string, unknown>;
    return { status, attempts, responseStatus, responseHash, errorCategory, receiptId, payment };
  };
  const nothing = { responseStatus: null, responseHash: null, payment: null };
  assert.deepEqual(of(1), {
    ...nothing,
    status: 'running',
    attempts: 0,
    errorCategory: null,
    receiptId: null,
  });
  assert.deepEqual(of(2), {
    ...nothing,
    status: 'failed',
    attempts: 1,
    errorCategory: 'connect_error',
    receiptId: receiptIdOf(2),
  });
  assert.deepEqual(of(3), {
    ...nothing,
    status: 'failed',
    attempts: 2,
    errorCategory: 'interrupted_unknown',
    receiptId: receiptIdOf(3),
  });
});

test('job, proof: events of a job whose row is gone leave it gone', async () => {
  const log = memoryLog();
  await appendAll(log, jobAppends(PLAN).slice(1));
  const rows = await rowsAfter(recorded(log));
  assert.deepEqual(keys(rows, 'jobs'), []);
  assert.deepEqual(keys(rows, 'proofs'), []);
  assert.deepEqual(keys(rows, 'receipts'), [receiptIdOf(1)], 'its receipt stays');
});

test('receipt: as signed, with the verdict on it; a second one of the same id changes nothing', async () => {
  const log = memoryLog();
  await appendAll(log, jobAppends(PLAN));
  await appendAll(log, jobAppends({ ...PLAN, receiptGood: false }).slice(1));
  const rows = await rowsAfter(recorded(log));
  const { jws, keyId, ...rest } = row(rows, 'receipts', receiptIdOf(1)) as Record<string, unknown>;
  assert.deepEqual(rest, {
    id: receiptIdOf(1),
    jobId: jobIdOf(1),
    decisionId: null,
    verified: true,
    signedAt: T(250),
  });
  assert.equal(String(jws).split('.').length, 3);
  assert.match(String(keyId), /^[A-Za-z0-9_-]{43}$/);
});

test('receipt: a compromised signing key is stored with the earliest second that was reported, a retired one is not', async () => {
  const log = memoryLog();
  const report = (letter: string, compromisedAt: string | null) =>
    keyRetired({ keyId: commitment(letter), reason: 'compromised', compromisedAt });
  const events = [report('a', T(0)), report('a', T(-1000)), report('a', T(1000)), report('b', null)];
  await appendAll(log, [{ stream: 'keys-relay', events }]);
  const rows = await rowsAfter(recorded(log));
  assert.deepEqual(keys(rows, 'revoked_keys'), [commitment('a')]);
  assert.deepEqual(row(rows, 'revoked_keys', commitment('a')), {
    keyId: commitment('a'),
    since: '2026-01-02T03:04:04',
  });
});

test('proof: the public summary, and nothing but it', async () => {
  const rows = await given({ seed: 4, answers: [302], paid: true }, { seed: 5, end: 'running' });
  assert.deepEqual(row(rows, 'proofs', jobIdOf(4)), {
    jobId: jobIdOf(4),
    receiptId: receiptIdOf(4),
    status: 'failed',
    method: 'POST',
    attempts: 1,
    responseStatus: 302,
    receiptVerified: true,
    errorCategory: 'target_redirect',
    createdAt: T(0),
    updatedAt: T(250),
    completedAt: T(250),
  });
  assert.deepEqual(row(rows, 'proofs', jobIdOf(5)), {
    jobId: jobIdOf(5),
    receiptId: null,
    status: 'running',
    method: 'PUT',
    attempts: 0,
    responseStatus: null,
    receiptVerified: false,
    errorCategory: null,
    createdAt: T(0),
    updatedAt: T(0),
    completedAt: null,
  });
});

/** `count` in the class of durations `at`, nothing in those before. */
const durations = (at: number, count: number) => [...Array(at).fill(0), count];

test('monitoring: jobs are counted by the minute and the hour of their completion, permanently', async () => {
  const minute = 60_000;
  const rows = await given(
    { seed: 1, attemptMs: minute },
    { seed: 2, attemptMs: minute, answers: [500] },
    { seed: 3, attemptMs: minute },
    { seed: 4, attemptMs: 2 * minute },
    { seed: 5, end: 'running' },
  );
  const first = T(minute).slice(0, 16);
  const second = T(2 * minute).slice(0, 16);
  assert.deepEqual(keys(rows, 'monitoring_minutes'), [first, second]);
  assert.deepEqual(row(rows, 'monitoring_minutes', first), {
    minute: first,
    succeeded: 2,
    failed: 1,
    durations: durations(DURATION_BOUNDS_MS.length - 1, 3),
  });
  assert.deepEqual(row(rows, 'monitoring_minutes', second), {
    minute: second,
    succeeded: 1,
    failed: 0,
    durations: durations(DURATION_BOUNDS_MS.length, 1),
  });
  const hour = first.slice(0, 13);
  assert.deepEqual(keys(rows, 'monitoring_hours'), [hour]);
  assert.deepEqual(row(rows, 'monitoring_hours', hour), {
    hour,
    succeeded: 3,
    failed: 1,
    durations: [...durations(DURATION_BOUNDS_MS.length - 1, 3), 1],
  });
  assert.deepEqual(row(rows, 'monitoring_totals', 'all'), {
    id: 'all',
    started: 5,
    succeeded: 3,
    failed: 1,
    lastUpdatedAt: T(2 * minute),
  });
});

test('monitoring: the bounds of durations rise from 25 ms to a minute', () => {
  assert.deepEqual([DURATION_BOUNDS_MS[0], DURATION_BOUNDS_MS.at(-1)], [25, 60_000]);
  assert.ok(DURATION_BOUNDS_MS.every((bound, at) => bound > (DURATION_BOUNDS_MS[at - 1] ?? 0)));
});

test('monitoring: a duration is from the first attempt to the receipt, in the class that ends at it or above', async () => {
  const minute = T(0).slice(0, 16);
  const of = async (...plans: readonly Partial<JobPlan>[]) =>
    row(await given(...plans), 'monitoring_minutes', minute)?.durations;
  const classOf = (ms: number) => DURATION_BOUNDS_MS.indexOf(ms);
  assert.deepEqual(await of({ attemptMs: 0 }), [1]);
  assert.deepEqual(await of({ attemptMs: 25 }), [1]);
  assert.deepEqual(await of({ attemptMs: 26 }), [0, 1]);
  assert.deepEqual(await of({ attemptMs: 250 }), durations(classOf(250), 1));
  assert.deepEqual(await of({ attemptMs: 251 }), durations(classOf(315), 1));
  // Two attempts of 250 ms, and a job that failed: both took 500 ms.
  const both = await of({ answers: [500, 200], attemptMs: 250 }, { seed: 2, answers: [500], attemptMs: 500 });
  assert.deepEqual(both, durations(classOf(500), 2));
});

test('monitoring: without a duration are jobs that somebody else closed, or that were never sent', async () => {
  const rows = await given(
    { seed: 1, end: 'interrupted_unknown' },
    { seed: 2, end: 'not_executed', answers: [500, 500] },
  );
  const minute = T(250).slice(0, 16);
  const counted = { minute, succeeded: 0, failed: 2, durations: null };
  assert.deepEqual(row(rows, 'monitoring_minutes', minute), counted);
});

test('monitoring: odd times and receipts that cannot be read are counted without a duration', async () => {
  const log = memoryLog();
  await appendAll(log, jobAppends(PLAN));
  const events = recorded(log);
  const signed = events.find((event) => event.type === 'ReceiptSigned');
  assert.ok(signed);
  const [header, payload, signature] = String(signed.data.jws).split('.');
  const claims = JSON.parse(Buffer.from(payload ?? '', 'base64url').toString());
  const startedAt = (text: string) => {
    const attempts = [{ ...claims.attempts[0], startedAt: text }];
    const body = Buffer.from(JSON.stringify({ ...claims, attempts })).toString('base64url');
    return { jws: `${header}.${body}.${signature}` };
  };
  const minuteAfter = async (data: object) => {
    const changed = events.map((event) =>
      event === signed ? { ...event, data: { ...event.data, ...data } } : event,
    );
    const rows = await rowsAfter(changed);
    assert.equal(keys(rows, 'monitoring_minutes').length, 1);
    return row(rows, 'monitoring_minutes', T(250).slice(0, 16));
  };
  const counted = { minute: T(250).slice(0, 16), succeeded: 1, failed: 0 };
  assert.notEqual((await minuteAfter(startedAt(T(0))))?.durations, null);
  for (const odd of [
    startedAt(T(251)),
    startedAt('yesterday'),
    startedAt('2025-13-02T03:04:05.678Z'),
    startedAt('2026-01-01T27:04:05.678Z'),
    startedAt(''),
    { jws: 'no receipt' },
    { jws: '' },
    { signedAt: '2026-99-99T99:99:99.999Z' },
    { signedAt: '0000-00-00T00:00:00.000Z' },
  ]) {
    assert.deepEqual(await minuteAfter(odd), { ...counted, durations: null }, JSON.stringify(odd));
  }
});

test('monitoring: a running job is listed with its lease until it ends', async () => {
  const rows = await given({ seed: 1, end: 'running' }, { seed: 2 }, { seed: 3, end: 'not_executed' });
  assert.deepEqual(keys(rows, 'running_jobs'), [jobIdOf(1)]);
  assert.deepEqual(row(rows, 'running_jobs', jobIdOf(1)), {
    jobId: jobIdOf(1),
    startedAt: T(0),
    // One attempt of 12 s and the margin of 15 s.
    leaseEndsAt: PLAN.startedAtMs + 27_000,
  });
});

test('schedule: its state and its next run follow its events; a run that is skipped after the cancellation plans none', async () => {
  const log = memoryLog();
  const stream = `schedule-${SCHEDULE_ID}`;
  for (const [event, status, nextRun, state] of [
    [scheduleDefined(), 'active', 1, undefined],
    [runFunded(), 'active', 2, 'funded'],
    [schedulePaused(), 'paused', 2, 'funded'],
    [scheduleCancelled(), 'cancelled', null, 'funded'],
    [runSkipped(), 'cancelled', null, 'skipped'],
  ] as const) {
    await appendAll(log, [{ stream, events: [event] }]);
    const rows = await rowsAfter(recorded(log));
    const [schedule, run] = [row(rows, 'schedules', SCHEDULE_ID), row(rows, 'schedule_runs', JOB_ID)];
    assert.deepEqual([schedule?.status, schedule?.nextRun, run?.state], [status, nextRun, state], event.type);
  }
});

test('trust: receipts, those that verify, and the newest of these', async () => {
  const rows = await given(
    { seed: 1 },
    { seed: 2, attemptMs: 70_000 },
    { seed: 3, attemptMs: 90_000, receiptGood: false },
  );
  assert.deepEqual(row(rows, 'trust_totals', 'all'), {
    id: 'all',
    receipts: 3,
    verified: 2,
    latestVerifiedAt: T(70_000),
    charged: 0,
    refunded: 0,
  });
  const ids = [T(250), T(70_000)].map((at) => `${at.slice(0, 16)} ${RECEIPT_KEY_ID}`);
  assert.deepEqual(keys(rows, 'trust_minutes'), ids);
  const [id = ''] = ids;
  assert.deepEqual(row(rows, 'trust_minutes', id), { id, keyId: RECEIPT_KEY_ID, verified: 1 });
});

/** Appends in the order of the log, then the row of decision 0. */
async function decision(...appends: readonly PlannedAppend[]): Promise<Record<string, unknown> | null> {
  const log = memoryLog();
  await appendAll(log, appends);
  return row(await rowsAfter(recorded(log)), 'decisions', decisionIdOf(0)) as Record<string, unknown> | null;
}

const outcomeOf = (found: Record<string, unknown> | null) => {
  const { outcomeStatus, jobId, receiptId, receiptVerified, responseStatus, errorCategory, attempts } =
    found ?? {};
  return { outcomeStatus, jobId, receiptId, receiptVerified, responseStatus, errorCategory, attempts };
};

const PENDING = {
  outcomeStatus: 'pending_execution',
  jobId: null,
  receiptId: null,
  receiptVerified: false,
  responseStatus: null,
  errorCategory: null,
  attempts: 0,
};

test('decision: what the record shows, and nothing of the buyer policy or of the facts that are not shown', async () => {
  const found = await decision(decisionAppend(0));
  const { actionHash, policyHash, ...rest } = found ?? {};
  assert.deepEqual(rest, {
    decisionId: decisionIdOf(0),
    ...PAY_AND_EXECUTE,
    createdAt: T(0),
    expiresAt: T(86_400_000),
    ...PENDING,
  });
  assert.match(String(actionHash), /^[0-9a-f]{64}$/);
  assert.match(String(policyHash), /^[0-9a-f]{64}$/);
  assert.notEqual(actionHash, policyHash);
});

test('decision: its outcome follows the job that names it, from its start to its receipt', async () => {
  const appends = jobAppends({ ...PLAN, seed: 3, decision: 0, answers: [500, 404], receiptGood: false });
  const [started, tried, ended] = appends;
  assert.ok(started && tried && ended);
  const running = { ...PENDING, outcomeStatus: 'running', jobId: jobIdOf(3) };
  assert.deepEqual(outcomeOf(await decision(decisionAppend(0), started)), running);
  assert.deepEqual(outcomeOf(await decision(decisionAppend(0), started, tried)), running);
  const failed = {
    outcomeStatus: 'failed',
    jobId: jobIdOf(3),
    receiptId: receiptIdOf(3),
    receiptVerified: false,
    responseStatus: 404,
    errorCategory: 'target_client_error',
    attempts: 2,
  };
  assert.deepEqual(outcomeOf(await decision(decisionAppend(0), ...appends)), failed);
  const good = jobAppends({ ...PLAN, seed: 4, decision: 0, answers: [201] });
  assert.deepEqual(outcomeOf(await decision(decisionAppend(0), ...good)), {
    outcomeStatus: 'succeeded',
    jobId: jobIdOf(4),
    receiptId: receiptIdOf(4),
    receiptVerified: true,
    responseStatus: 201,
    errorCategory: null,
    attempts: 1,
  });
});

test('decision: of several jobs the one that was started last is shown, however late the others end', async () => {
  const job = (seed: number, answer: number) => jobAppends({ ...PLAN, seed, decision: 0, answers: [answer] });
  const [firstStart, firstEnd] = job(1, 500);
  const [lastStart, lastEnd] = job(2, 200);
  assert.ok(firstStart && firstEnd && lastStart && lastEnd);
  const overtaken = await decision(decisionAppend(0), firstStart, lastStart, lastEnd, firstEnd);
  assert.deepEqual([overtaken?.jobId, overtaken?.outcomeStatus], [jobIdOf(2), 'succeeded']);
  assert.deepEqual([overtaken?.receiptId, overtaken?.responseStatus], [receiptIdOf(2), 200]);
  const again = await decision(decisionAppend(0), lastStart, lastEnd, firstStart);
  assert.deepEqual(outcomeOf(again), { ...PENDING, outcomeStatus: 'running', jobId: jobIdOf(1) });
});

test('decision: a job that names a decision that is not there makes no row, nor does one that names none', async () => {
  assert.equal(await decision(...jobAppends({ ...PLAN, decision: 0 })), null);
  const other = await decision(
    decisionAppend(0),
    ...jobAppends({ ...PLAN, decision: 1 }),
    ...jobAppends(PLAN),
  );
  assert.deepEqual(outcomeOf(other), PENDING);
});

test('trust: payments charged, refunded and open, as the balance of the log has them', async () => {
  const log = memoryLog();
  const settled = (seed: number) => ({
    stream: `payment-${seed}`,
    events: [paymentReserved({ jobId: jobIdOf(seed) }), paymentSettled({ jobId: jobIdOf(seed) })],
  });
  const refund = (seed: number) => ({
    stream: `payment-${seed}`,
    events: [refundBegun({ jobId: jobIdOf(seed) }), paymentRefunded({ jobId: jobIdOf(seed) })],
  });
  const counted = async () => {
    const rows = await rowsAfter(recorded(log));
    const { charged, refunded } = row(rows, 'trust_totals', 'all') ?? {};
    const open = keys(rows, 'trust_open_payments').length;
    const [books] = await balancePayments(log);
    const paid = (amount: string | undefined) => Number(amount ?? 0) / 3000;
    assert.deepEqual(
      [charged, refunded, open],
      [paid(books?.charged), paid(books?.refunded), paid(books?.open)],
    );
    return [charged, refunded, open];
  };
  for (const seed of [1, 2, 3, 4, 5]) await appendAll(log, [settled(seed)]);
  assert.deepEqual(await counted(), [5, 0, 5]);
  // Served, interrupted, running, unserved, and served.
  await appendAll(log, jobAppends({ ...PLAN, seed: 1, paid: true }));
  await appendAll(log, jobAppends({ ...PLAN, seed: 2, paid: true, end: 'interrupted_unknown' }));
  await appendAll(log, jobAppends({ ...PLAN, seed: 3, paid: true, end: 'running' }));
  await appendAll(log, jobAppends({ ...PLAN, seed: 5, paid: true, answers: [500] }));
  assert.deepEqual(await counted(), [5, 0, 3]);
  for (const seed of [2, 4, 5]) await appendAll(log, [refund(seed)]);
  assert.deepEqual(await counted(), [5, 3, 1]);

  // A served one and an unserved one are missing on the chain, and found again.
  await appendAll(log, [settled(6)]);
  const before = await counted();
  const missing = (seed: number) => ({
    stream: `payment-${seed}`,
    events: [paymentMissing({ jobId: jobIdOf(seed) })],
  });
  const found = (seed: number) => ({
    stream: `payment-${seed}`,
    events: [paymentSettled({ jobId: jobIdOf(seed), evidence: 'chain' })],
  });
  await appendAll(log, [missing(1), missing(6)]);
  const totals = row(await rowsAfter(recorded(log)), 'trust_totals', 'all');
  assert.equal(totals?.charged, Number(before[0]) - 2);
  await appendAll(log, [found(1), found(6)]);
  assert.deepEqual(await counted(), before);
  // One that can never be paid is taken back, as in the balance.
  await appendAll(log, [
    missing(6),
    { stream: 'payment-6', events: [paymentRejected({ jobId: jobIdOf(6) })] },
  ]);
  assert.deepEqual(await counted(), [5, 3, 1]);
});
