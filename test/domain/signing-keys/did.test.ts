import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didKeyId, didOf } from '#src/domain/signing-keys/keys.ts';

test('did:web: the host as it is, its port and every other colon encoded (did:web, section 3.1)', () => {
  assert.equal(didOf('relay.example', ''), 'did:web:relay.example');
  assert.equal(didOf('localhost', '3402'), 'did:web:localhost%3A3402');
  assert.equal(didOf('[::1]', '3402'), 'did:web:%5B%3A%3A1%5D%3A3402');
});

test('did:web: a key is a fragment of its document', () => {
  assert.equal(didKeyId(didOf('relay.example', ''), 'thumb-print_1'), 'did:web:relay.example#thumb-print_1');
});
