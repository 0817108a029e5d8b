import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lingerAfter } from '#projections/session.ts';

test('runner: a batch gathers for 20 times as long as the last one took, 100 ms at least and 500 ms at most', () => {
  assert.equal(lingerAfter(0), 100);
  assert.equal(lingerAfter(10), 200);
  assert.equal(lingerAfter(5000), 500);
});
