// An auditor's own evidence, compared with a record.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareCheckpoint, compareKeys, type KeptFacts } from '#src/domain/audit/evidence.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { testKey } from '#test/support/primitives.ts';

const { record: key } = testKey({ notBefore: 1000, notAfter: 2000 });
const location = { stream: 'keys-relay', revision: '0', jobId: null, position: '1' };

const kindsOf = (announced: KeyRecord, trusted: readonly KeyRecord[]) =>
  compareKeys([{ key: announced, location }], trusted).map(({ fault }) => fault.kind);

test('a key set that agrees, or that lacks a retirement so far: no finding', () => {
  assert.deepEqual(kindsOf(key, [key]), []);
  assert.deepEqual(kindsOf(key, [{ ...key, notAfter: null }]), []);
  assert.deepEqual(kindsOf({ ...key, compromisedAt: 1500 }, [key]), []);
  assert.deepEqual(kindsOf({ ...key, notAfter: 1999 }, [key]), [], 'ended earlier');
});

test('a key that may sign earlier or longer than the key set says', () => {
  for (const wider of [
    { ...key, notBefore: 999 },
    { ...key, notAfter: 2001 },
    { ...key, notAfter: null },
  ]) {
    assert.deepEqual(kindsOf(wider, [key]), ['key_window_wider']);
  }
  assert.deepEqual(kindsOf(key, [{ ...key, compromisedAt: 1500 }]), ['key_window_wider']);
});

test('a key with another id, purpose or public key is another key', () => {
  const other = testKey().record;
  for (const trusted of [
    { ...key, keyId: other.keyId },
    { ...key, x: other.x },
    { ...key, purpose: 'checkpoint' as const },
  ]) {
    assert.deepEqual(kindsOf(key, [trusted]), ['key_untrusted', 'key_missing']);
  }
  const [untrusted] = compareKeys([{ key, location }], []);
  assert.deepEqual([untrusted?.fault.kind, untrusted?.location], ['key_untrusted', location]);
});

const root = new Uint8Array(32).fill(7);
const kept = { origin: 'relay.example/receipts', size: 5, root, source: 'a file', note: '' };
const facts: KeptFacts = {
  origin: kept.origin,
  leaves: 9,
  root,
  recorded: true,
  largest: 9,
  signature: 'good',
};
const judged = (changes: Partial<KeptFacts>) =>
  compareCheckpoint(kept, { ...facts, ...changes }).faults.map(({ kind }) => kind);

test('a kept checkpoint fits the same root under the same name only', () => {
  assert.deepEqual(judged({}), []);
  assert.deepEqual(judged({ origin: 'else.example/receipts' }), ['kept_checkpoint_origin_mismatch']);
  assert.deepEqual(judged({ origin: null }), ['kept_checkpoint_origin_mismatch']);
  assert.deepEqual(judged({ root: null, leaves: 4 }), ['kept_checkpoint_ahead']);
  assert.deepEqual(judged({ root: new Uint8Array(32) }), ['kept_checkpoint_root_mismatch']);
});

test('a kept checkpoint that fits and is missing from the record is a finding, unless no key of the relay signed it', () => {
  const recorded = false;
  assert.deepEqual(judged({ recorded }), ['kept_checkpoint_unrecorded']);
  assert.deepEqual(judged({ recorded, signature: 'compromised' }), [
    'kept_checkpoint_key_compromised',
    'kept_checkpoint_unrecorded',
  ]);
  assert.deepEqual(judged({ recorded, signature: 'none' }), ['kept_checkpoint_signature_invalid']);
  assert.deepEqual(judged({ recorded, root: null, leaves: 4 }), ['kept_checkpoint_ahead']);
});

test('a record without a larger checkpoint may end before the kept one: counted, and no finding', () => {
  const unreached = { recorded: false, largest: 4 };
  const isNoted = (changes: Partial<KeptFacts>) =>
    compareCheckpoint(kept, { ...facts, ...unreached, ...changes }).unreached;
  for (const largest of [4, 5, null]) {
    assert.deepEqual(judged({ ...unreached, largest }), []);
    assert.equal(isNoted({ largest }), true);
  }
  assert.equal(isNoted({ largest: 6 }), false);
  assert.deepEqual(judged({ ...unreached, largest: 6 }), ['kept_checkpoint_unrecorded']);
  for (const changes of [
    { recorded: true },
    { signature: 'none' as const },
    { root: null },
    { root: new Uint8Array(32) },
    { origin: null },
  ]) {
    assert.equal(isNoted(changes), false);
  }
});

test('a key set may be newer than the record: the messages state it', () => {
  const newer = [{ ...key, notAfter: 1500 }, testKey().record];
  const found = compareKeys([{ key, location }], newer);
  assert.deepEqual(
    found.map(({ fault }) => fault.kind),
    ['key_window_wider', 'key_missing'],
  );
  for (const { fault } of found) assert.match(fault.message, /, or the record is older than the key set$/);
});

test('a record with fewer leaves may be older: the message states it', () => {
  const [fault] = compareCheckpoint(kept, { ...facts, root: null, leaves: 4 }).faults;
  assert.match(fault?.message ?? '', /or the record is older than the checkpoint$/);
});

test('size and root are compared for any signature', () => {
  for (const [signature, kind] of [
    ['none', 'kept_checkpoint_signature_invalid'],
    ['compromised', 'kept_checkpoint_key_compromised'],
  ] as const) {
    assert.deepEqual(judged({ signature }), [kind]);
    assert.deepEqual(judged({ signature, root: null }), [kind, 'kept_checkpoint_ahead']);
    assert.deepEqual(judged({ signature, root: new Uint8Array(32) }), [
      kind,
      'kept_checkpoint_root_mismatch',
    ]);
  }
});
