// When an attempt is followed by another, and after which wait.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ErrorCategory, ErrorCategory as ErrorCategorySchema } from '#src/domain/event-fields.ts';
import {
  type AttemptOutcome,
  categoryOfStatus,
  planRetry,
  type RetryFacts,
  retryAfterMs,
} from '#src/domain/job/retry.ts';

const facts: RetryFacts = { attempt: 1, attemptsAllowed: 3, backoffMs: 250, dice: 0.5 };
const stop = { willRetry: false, waitMs: null };

function failed(errorCategory: ErrorCategory | null, over: Partial<AttemptOutcome> = {}): AttemptOutcome {
  return { errorCategory, status: null, retryAfterMs: null, abort: false, ...over };
}

function answered(status: number, over: Partial<AttemptOutcome> = {}): AttemptOutcome {
  return failed(categoryOfStatus(status), { status, ...over });
}

test('of failures without a status only look-up, connection, timeout and truncation are retried', () => {
  const retried = ErrorCategorySchema.anyOf
    .map(({ const: name }) => name)
    .filter((name) => planRetry(failed(name), facts).willRetry);
  assert.deepEqual(retried, ['timeout', 'dns_error', 'connect_error', 'truncated_response']);
});

test('of statuses only 408, 425, 429, 500, 502, 503 and 504 are retried', () => {
  const retried = Array.from({ length: 900 }, (_, i) => 100 + i).filter(
    (status) => planRetry(answered(status), facts).willRetry,
  );
  assert.deepEqual(retried, [408, 425, 429, 500, 502, 503, 504]);
});

test('a 2xx whose body was cut or late is retried, a 404 whose body was cut is not', () => {
  assert.equal(planRetry(failed('truncated_response', { status: 200 }), facts).willRetry, true);
  assert.equal(planRetry(failed('timeout', { status: 200 }), facts).willRetry, true);
  assert.equal(planRetry(failed('truncated_response', { status: 404 }), facts).willRetry, false);
  assert.equal(planRetry(failed('timeout', { status: 302 }), facts).willRetry, false);
  assert.equal(planRetry(failed('protocol_error', { status: 200 }), facts).willRetry, false);
});

test('the last attempt allowed is the last', () => {
  assert.deepEqual(planRetry(answered(503), { ...facts, attempt: 3 }), stop);
  assert.deepEqual(planRetry(answered(503), { ...facts, attemptsAllowed: 1 }), stop);
  assert.equal(planRetry(answered(503), { ...facts, attempt: 2 }).willRetry, true);
});

test('the wait is full jitter over backoffMs × 2^(n−1), at most 5000 ms', () => {
  const wait = (over: Partial<RetryFacts>) => planRetry(answered(503), { ...facts, ...over }).waitMs;
  assert.equal(wait({ dice: 0 }), 0);
  assert.equal(wait({ dice: 0.5 }), 125);
  assert.equal(wait({ dice: 0.5, attempt: 2 }), 250);
  assert.equal(wait({ dice: 0.5, attempt: 2, backoffMs: 5000 }), 2500);
  assert.equal(wait({ dice: 0.999_999, attempt: 2, backoffMs: 5000 }), 4999);
  assert.equal(wait({ dice: 0.9, backoffMs: 0 }), 0);
});

test('Retry-After is the least wait where it fits in 5000 ms, else it ends the job', () => {
  const wait = (ms: number, dice = 0) =>
    planRetry(answered(429, { retryAfterMs: ms }), { ...facts, backoffMs: 4000, dice });
  assert.deepEqual(wait(2000), { willRetry: true, waitMs: 2000 });
  assert.deepEqual(wait(2000, 0.9), { willRetry: true, waitMs: 3600 });
  assert.deepEqual(wait(5000), { willRetry: true, waitMs: 5000 });
  assert.deepEqual(wait(5001), stop);
  assert.deepEqual(wait(Number.MAX_SAFE_INTEGER), stop);
});

test('a target that asks for no more gets no more', () => {
  assert.deepEqual(planRetry(answered(503, { abort: true }), facts), stop);
  assert.deepEqual(planRetry(answered(410, { abort: true }), facts), stop);
});

test('every wait is a whole number from 0 to 5000', () => {
  const outcome = fc.record({
    errorCategory: fc.constantFrom<ErrorCategory | null>('timeout', 'dns_error', 'target_server_error', null),
    status: fc.constantFrom(null, 200, 408, 503),
    retryAfterMs: fc.option(fc.nat(10_000)),
    abort: fc.boolean(),
  });
  const any = fc.record({
    attempt: fc.integer({ min: 1, max: 3 }),
    attemptsAllowed: fc.integer({ min: 1, max: 3 }),
    backoffMs: fc.integer({ min: 0, max: 5000 }),
    dice: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });
  fc.assert(
    fc.property(outcome, any, (report, given) => {
      const plan = planRetry(report, given);
      if (!plan.willRetry) return assert.equal(plan.waitMs, null);
      assert.ok(
        Number.isInteger(plan.waitMs) && plan.waitMs >= (report.retryAfterMs ?? 0) && plan.waitMs <= 5000,
      );
      assert.ok(given.attempt < given.attemptsAllowed && !report.abort && report.errorCategory !== null);
    }),
  );
});

const NOW = Date.UTC(1994, 10, 6, 8, 49, 30);

test('Retry-After is read in seconds and as a date', () => {
  assert.equal(retryAfterMs('0', NOW), 0);
  assert.equal(retryAfterMs(' 120 ', NOW), 120_000);
  assert.equal(retryAfterMs('9'.repeat(40), NOW), Number.MAX_SAFE_INTEGER);
  assert.equal(retryAfterMs('Sun, 06 Nov 1994 08:49:37 GMT', NOW), 7000);
  assert.equal(retryAfterMs('Sun, 06 Nov 1994 08:49:00 GMT', NOW), 0);
});

test('an unreadable Retry-After is none', () => {
  for (const text of [
    null,
    '',
    '-1',
    '1.5',
    '1e3',
    'soon',
    '5, 6',
    '2026-01-01T00:00:00Z',
    'Sun, 32 Nov 1994 08:49:37 GMT',
    'Sun, 06 Foo 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 24:49:37 GMT',
    'Sun, 06 Nov 1994 08:49:37 PST',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
  ]) {
    assert.equal(retryAfterMs(text, NOW), null, String(text));
  }
});
