import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault, isRefused, type Refused, refused } from '#src/domain/refusal.ts';

test('a refusal is data: its code, its message, and only the given extras', () => {
  const plain = refused('unsafe_target', 'No.');
  assert.deepEqual(plain, { refused: 'unsafe_target', message: 'No.' });
  assert.deepEqual(Object.keys(refused('rate_limited', 'Later.', { retryAfterSeconds: 3 })).sort(), [
    'message',
    'refused',
    'retryAfterSeconds',
  ]);
  assert.equal(isRefused(plain), true);
  assert.equal(isRefused({ href: 'https://a.example/' }), false);
});

test('only `refused` makes a refusal: an object of the same shape does not compile', () => {
  // @ts-expect-error: it lacks the brand.
  const made: Refused = { refused: 'rate_limited', message: 'Later.' };
  assert.deepEqual(made, refused('rate_limited', 'Later.'));
});

test('a fault keeps its cause for the operator and shows the caller code and message only', () => {
  const cause = new Error('10.0.0.1 refused');
  const fault = new Fault('event_log_unavailable', 'Later.', { cause, retryAfterSeconds: 5 });
  assert.equal(fault.cause, cause);
  assert.deepEqual(
    [fault.code, fault.retryAfterSeconds, fault.details],
    ['event_log_unavailable', 5, undefined],
  );
  assert.doesNotMatch(JSON.stringify(fault), /10\.0\.0\.1/);
  assert.equal(new Fault('internal_error', 'x').retryAfterSeconds, null);
});
