import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { revocations } from '#src/domain/signing-keys/compromised.ts';
import { type KeyRecord, keyValidAt } from '#src/domain/signing-keys/keys.ts';

const key = (changes: Partial<KeyRecord> = {}): KeyRecord => ({
  keyId: 'k',
  purpose: 'receipt',
  x: 'x',
  notBefore: 0,
  notAfter: null,
  compromisedAt: null,
  ...changes,
});

test('nothing is revoked while no receipt key is compromised', () => {
  const keys = [key(), key({ notAfter: 60 }), key({ purpose: 'checkpoint', notAfter: 60, compromisedAt: 9 })];
  assert.deepEqual(revocations(keys), []);
});

test('a compromised key revokes exactly the receipts that it was not valid for', () => {
  const end = fc.option(fc.nat({ max: 20 }));
  fc.assert(
    fc.property(end, fc.nat({ max: 20 }), fc.nat({ max: 25 }), (notAfter, compromisedAt, iat) => {
      const record = key({ notAfter, compromisedAt });
      const [undoing, ...more] = revocations([key({ keyId: 'other' }), record]);
      assert.deepEqual([undoing?.keyId, more], ['k', []]);
      assert.equal(iat >= (undoing?.from ?? Number.NaN), !keyValidAt(record, iat));
    }),
  );
});
