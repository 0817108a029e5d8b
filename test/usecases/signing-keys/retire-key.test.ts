// relay keys retire: ten minutes' notice, never the only key, and never later than it was.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retireKey } from '#src/usecases/signing-keys/change-keys.ts';
import { KeyMismatch } from '#src/usecases/signing-keys/key-ring.ts';
import { at, commitment, hex, keyRetired, receiptSigned, T0 } from '#test/support/given/given-events.ts';
import { afterOthers } from '#test/support/log/fakes-log.ts';
import { activationOf, memoryKeyStore, storedKey } from '#test/support/world/fakes-keys.ts';
import { given, world } from '#test/support/world/fakes-world.ts';

const KEYS = 'keys-relay';

/** Two receipt keys and one of checkpoints, all known to log and file. */
async function office() {
  const it = world();
  const [first, second, checkpoint] = [storedKey(), storedKey(), storedKey('checkpoint')] as const;
  const keys = [first, second, checkpoint];
  await given(it, KEYS, ...keys.map((key) => activationOf(key)));
  const store = memoryKeyStore(...keys);
  const retire = (keyId: string, compromisedAt: number | null = null) =>
    retireKey({ ...it.deps, store }, keyId, compromisedAt);
  const appended = async () =>
    (await it.log.readStream(KEYS)).slice(3).map(({ type, data }) => ({ type, data }));
  return { ...it, store, retire, appended, first, second, checkpoint };
}

test('a key that another can stand in for signs for ten minutes more, and is marked in the file', async () => {
  const it = await office();
  const { outcome } = await it.retire(it.first.keyId);
  assert.equal(outcome, 'retired');
  assert.deepEqual(await it.appended(), [
    keyRetired({ keyId: it.first.keyId, reason: 'retired', effectiveAt: at(600_000), retiredAt: at(0) }),
  ]);
  assert.deepEqual(it.store.states(), ['receipt retired', 'receipt active', 'checkpoint active']);
});

test('a compromised key is recorded with the day from which nothing counts', async () => {
  const it = await office();
  const result = await it.retire(it.first.keyId, T0 - 3_600_000);
  assert.ok(result.outcome === 'retired');
  assert.equal(result.record.compromisedAt, T0 / 1000 - 3600);
  assert.deepEqual(await it.appended(), [
    keyRetired({
      keyId: it.first.keyId,
      reason: 'compromised',
      effectiveAt: at(600_000),
      compromisedAt: at(-3_600_000),
      retiredAt: at(0),
    }),
  ]);
});

test('the only key that can sign is not retired, whatever for', async () => {
  const it = await office();
  await it.retire(it.first.keyId);
  for (const compromisedAt of [null, T0]) {
    assert.deepEqual(await it.retire(it.second.keyId, compromisedAt), {
      outcome: 'only_key',
      purpose: 'receipt',
    });
    assert.deepEqual(await it.retire(it.checkpoint.keyId, compromisedAt), {
      outcome: 'only_key',
      purpose: 'checkpoint',
    });
  }
  assert.equal((await it.appended()).length, 1);
});

test('a key that is missing from the file or marked retired there is no successor', async () => {
  const it = await office();
  it.store.put({ keys: [it.first, { ...it.second, status: 'retired' }] });
  assert.equal((await it.retire(it.first.keyId)).outcome, 'only_key');
  it.store.put({ keys: [it.first] });
  assert.equal((await it.retire(it.first.keyId)).outcome, 'only_key');
  assert.equal((await it.retire(it.second.keyId)).outcome, 'retired');
});

test('a second retirement closes a key earlier; one that would not is not recorded', async () => {
  const it = await office();
  await it.retire(it.first.keyId);
  assert.equal((await it.retire(it.first.keyId)).outcome, 'unchanged');
  it.clock.advance(60_000);
  assert.equal((await it.retire(it.first.keyId)).outcome, 'unchanged');
  assert.equal((await it.retire(it.first.keyId, T0)).outcome, 'retired');
  assert.equal((await it.retire(it.first.keyId, T0 + 1000)).outcome, 'unchanged');
  assert.equal((await it.retire(it.first.keyId, T0 - 1000)).outcome, 'retired');
  assert.equal((await it.appended()).length, 3);
});

test('a retiring key can still be reported as compromised, also if there is no other', async () => {
  const it = await office();
  await it.retire(it.first.keyId);
  it.store.put({ keys: [it.first] });
  assert.equal((await it.retire(it.first.keyId, T0)).outcome, 'retired');
});

test('a key that the log does not know', async () => {
  const it = await office();
  assert.deepEqual(await it.retire(commitment('o')), { outcome: 'unknown_key' });
});

test('two operators at once retire one key each of two: the second is refused', async () => {
  const it = await office();
  it.log.onNext(
    'SigningKeyRetired',
    afterOthers(() => it.retire(it.second.keyId)),
  );
  assert.equal((await it.retire(it.first.keyId)).outcome, 'only_key');
  assert.equal((await it.appended()).length, 1);
});

test('a key file of another log is refused', async () => {
  const it = await office();
  it.store.put({ secretCheck: hex('4') });
  await assert.rejects(it.retire(it.first.keyId), KeyMismatch);
});

test('a file that cannot be changed keeps no key from its retirement', async () => {
  const it = await office();
  const update = () => assert.fail('read-only');
  const store = { ...it.store, update };
  assert.equal((await retireKey({ ...it.deps, store }, it.first.keyId, null)).outcome, 'retired');
  assert.equal(it.logger.lines.at(-1)?.level, 'warn');
});

test('a key that is no longer needed ends after the newest receipt that it signed; a compromised one at once', async () => {
  const signedAt = at(86_400_000);
  for (const [compromisedAt, effectiveAt] of [
    [null, at(86_400_000 + 600_000)],
    [T0, at(600_000)],
  ] as const) {
    const it = await office();
    const { keyId } = it.first;
    await given(it, 'job-a', receiptSigned({ keyId, signedAt }));
    await it.retire(keyId, compromisedAt);
    const [event] = await it.appended();
    assert.equal(event?.data.effectiveAt, effectiveAt);
  }
});
