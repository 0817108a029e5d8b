// What a page says of the cosigners of a checkpoint, from its lines alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cosignersText, statedCosigners } from '#src/domain/transparency/cosignature.ts';
import { c2spKey } from '#test/support/witness/c2sp.ts';
import { C2spLog } from '#test/support/witness/c2sp-log.ts';
import { cosignedBy } from '#test/support/witness/cosigned.ts';

const checkpoint = new C2spLog('log.example').grow(3).checkpoint();
const [w1, w2] = [c2spKey('w1.example', 4), c2spKey('w2.example', 4)];

test('each cosigner is named with its time; the signature of the log is none', () => {
  assert.equal(cosignersText(checkpoint), 'No witness has cosigned this checkpoint.');
  const text = cosignersText(cosignedBy(checkpoint, 1_800_000_000, w1, w2));
  assert.match(text, /w1\.example at 2027-01-15T08:00:00\.000Z, w2\.example at 2027-01-15T08:00:00\.000Z/);
});

test('a time that no calendar has is left out', () => {
  const last = 8.64e12;
  assert.deepEqual(statedCosigners(cosignedBy(checkpoint, last, w1)), [{ name: 'w1.example', time: last }]);
  assert.deepEqual(statedCosigners(cosignedBy(checkpoint, last + 1, w1)), []);
});
