// FIPS 180-4 examples, and both implementations compared around the block size.

import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { test } from 'node:test';
import { sha256 as ofRuntime } from '#src/lib/sha256-node.ts';
import { sha256 as portable } from '#src/lib/sha256-portable.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

test('SHA-256: the example of FIPS 180-4', () => {
  const abc = new TextEncoder().encode('abc');
  const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  assert.equal(hex(ofRuntime(abc)), expected);
  assert.equal(hex(portable(abc)), expected);
});

test('SHA-256: the portable implementation and the runtime’s return the same 32 bytes', () => {
  for (let length = 0; length < 200; length++) {
    // A view with an offset: only its own bytes are hashed.
    const bytes = Uint8Array.from({ length: length + 3 }, (_, i) => (i * 37) % 256).subarray(3);
    const digest = ofRuntime(bytes);
    assert.equal(Object.getPrototypeOf(digest), Uint8Array.prototype);
    assert.deepEqual(digest, portable(bytes));
  }
});
