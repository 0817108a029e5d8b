import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { disclose } from '#src/domain/receipt/disclosures.ts';

const salt = Uint8Array.from({ length: 16 }, (_, i) => i * 7);

test('SD-JWT form: the disclosure is base64url(JSON [salt, name, value]), the commitment its SHA-256', async () => {
  for (const value of ['https://täglich.example/😀', ['a', 'b'], '', []] as const) {
    const { text, commitment } = disclose(salt, 'target_url', value);
    assert.deepEqual(JSON.parse(Buffer.from(text, 'base64url').toString()), [
      Buffer.from(salt).toString('base64url'),
      'target_url',
      value,
    ]);
    assert.equal(commitment, createHash('sha256').update(text, 'ascii').digest('base64url'));
  }
});

test('the same value under another salt or name is another commitment', async () => {
  const of = async (s: Uint8Array, name: 'target_url' | 'target_origin') => disclose(s, name, 'v').commitment;
  const all = [
    await of(salt, 'target_url'),
    await of(salt, 'target_origin'),
    await of(new Uint8Array(16), 'target_url'),
  ];
  assert.equal(new Set(all).size, 3);
});

test('a salt has exactly 128 bits', async () => {
  for (const length of [0, 15, 17, 32])
    assert.throws(() => disclose(new Uint8Array(length), 'target_url', 'v'), RangeError);
});
