import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { hmacKeyedHash, secretCheck } from '#src/adapters/signing/hash.ts';
import { toHex } from '#src/domain/encoding.ts';

const secret = Uint8Array.from({ length: 32 }, (_, i) => i);
const other = Uint8Array.from({ length: 32 }, (_, i) => i + 1);

test('keyed hash: HMAC-SHA-256 of label, a zero byte and the text in UTF-8', () => {
  const expected = createHmac('sha256', secret)
    .update(Buffer.concat([Buffer.from('claim'), Buffer.from([0]), Buffer.from('läßt 🎟')]))
    .digest('hex');
  assert.equal(toHex(hmacKeyedHash(secret).mac('claim', 'läßt 🎟')), expected);
});

test('keyed hash: differs per label and per secret, and the border between label and text is unambiguous', () => {
  const { mac } = hmacKeyedHash(secret);
  assert.notDeepEqual(mac('claim', 'x'), mac('fingerprint', 'x'));
  assert.notDeepEqual(mac('ab', 'c'), mac('a', 'bc'));
  assert.notDeepEqual(mac('claim', 'x'), hmacKeyedHash(other).mac('claim', 'x'));
  assert.throws(() => mac('a\0b', 'c'), RangeError);
  assert.throws(() => hmacKeyedHash(secret.subarray(1)), RangeError);
});

test('keyed hash: copies the secret, so that wiping it later has no effect', () => {
  const mine = Uint8Array.from(secret);
  const { mac } = hmacKeyedHash(mine);
  const before = mac('claim', 'x');
  mine.fill(0);
  assert.deepEqual(mac('claim', 'x'), before);
});

test('secret check: 32 bytes of hex, equal for equal secrets only, and pinned', () => {
  assert.match(secretCheck(secret), /^[0-9a-f]{64}$/);
  assert.notEqual(secretCheck(secret), secretCheck(other));
  // It is stored in every SigningKeyActivated: with another value no deployment could start.
  assert.equal(
    secretCheck(secret),
    createHmac('sha256', secret).update('secret-check\0relay/1').digest('hex'),
  );
});
