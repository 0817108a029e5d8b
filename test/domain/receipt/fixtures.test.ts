// Each receipt version that was ever released has a frozen fixture, which a later release must still read.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { RECEIPT_VERSIONS, ReceiptPayload } from '#src/domain/receipt/payload.ts';

test('every receipt version has its frozen fixture, and every fixture a version', () => {
  const files = readdirSync(new URL('../../fixtures', import.meta.url)).filter((name) =>
    /^receipts-/.test(name),
  );
  assert.deepEqual(
    files.sort(),
    RECEIPT_VERSIONS.map((version) => `receipts-v${version}.json`).sort(),
    'freeze test/fixtures/receipts-v<version>.json with receipts of the new version',
  );
  assert.deepEqual(
    ReceiptPayload.anyOf.map(({ properties }) => properties.v.const),
    [...RECEIPT_VERSIONS],
  );
});
