import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { STREAM } from '#src/domain/events.ts';
import { ID_PATTERN, makeId } from '#src/domain/ids.ts';

const random = fc.uint8Array({ minLength: 16, maxLength: 20 });

test('an id is its prefix and 26 letters, contains no "-", and matches its published pattern', () => {
  fc.assert(
    fc.property(random, (bytes) => {
      for (const [prefix, pattern] of [
        ['job', ID_PATTERN.job],
        ['rcpt', ID_PATTERN.receipt],
        ['dec', ID_PATTERN.decision],
      ] as const) {
        assert.match(makeId(prefix, bytes), new RegExp(pattern));
      }
      assert.doesNotMatch(makeId('hnd', bytes), /-/);
    }),
  );
});

test('an id contains all 128 bits: draws that differ in one bit give different ids', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.nat(127), (bytes, bit) => {
      const other = Uint8Array.from(bytes);
      other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      assert.notEqual(makeId('job', bytes), makeId('job', other));
    }),
  );
  assert.equal(makeId('job', new Uint8Array(16)), `job_${'0'.repeat(26)}`);
  assert.equal(makeId('job', new Uint8Array(16).fill(255)), `job_7${'z'.repeat(25)}`);
});

test('fewer than 128 random bits are refused', () => {
  assert.throws(() => makeId('job', new Uint8Array(15)), RangeError);
});

test("a stream's category is the text before the first '-'", () => {
  assert.deepEqual(
    [
      STREAM.job('job_a'),
      STREAM.decision('dec_a'),
      STREAM.payment('ab'),
      STREAM.claim('cd'),
      STREAM.keys,
      STREAM.receiptLog,
    ].map((name) => name.split('-').length),
    [2, 2, 2, 2, 2, 2],
  );
});
