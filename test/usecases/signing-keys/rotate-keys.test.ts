// relay keys rotate: the file, the log, the file again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyPurpose } from '#src/domain/events/signing-keys.ts';
import { keyValidAt } from '#src/domain/signing-keys/keys.ts';
import type { KeyStore } from '#src/ports/key-store.ts';
import { rotateKeys } from '#src/usecases/signing-keys/change-keys.ts';
import { KeyMismatch, LogTakesNothing, loadKeyRing } from '#src/usecases/signing-keys/key-ring.ts';
import {
  at,
  commitment,
  hex,
  jobStarted,
  keyRetired,
  receiptSigned,
  T0,
} from '#test/support/given/given-events.ts';
import { afterOthers, Crash, dies, faultyLog, lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { letPass } from '#test/support/world/fakes.ts';
import { activationOf, memoryKeyStore, storedKey } from '#test/support/world/fakes-keys.ts';
import { given, shared, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

const KEYS = 'keys-relay';
const GRACE = 600_000;

/** A log that knows one receipt key and one of checkpoints, and the file that holds both. */
async function office(purposes: readonly KeyPurpose[] = ['receipt', 'checkpoint'], it: World = world()) {
  const keys = purposes.map((purpose) => storedKey(purpose));
  await given(it, KEYS, ...keys.map((key) => activationOf(key)));
  const store = memoryKeyStore(...keys);
  const rotate = (purpose: KeyPurpose = 'receipt', changed: KeyStore = store) =>
    rotateKeys({ ...it.deps, store: changed }, purpose);
  const events = async () => (await it.log.readStream(KEYS)).map(({ type, data }) => ({ type, data }));
  return { ...it, store, rotate, events, old: keys[0] ?? assert.fail() };
}

test('a fresh key in front of the file, announced with the retirement of the old one in one append, which is then marked', async () => {
  const it = await office();
  const states: unknown[] = [];
  it.log.onNext('SigningKeyActivated', async (append) => {
    states.push(it.store.states());
    return append();
  });
  const { keyId, ...result } = await it.rotate();
  assert.deepEqual(states, [['receipt active', 'receipt active', 'checkpoint active']]);
  assert.deepEqual(it.store.states(), ['receipt active', 'receipt retired', 'checkpoint active']);
  const [fresh] = it.store.read().keys;
  assert.equal(keyId, fresh?.keyId);
  const effectiveAt = at(GRACE);
  assert.deepEqual(result, { retiring: [{ keyId: it.old.keyId, effectiveAt }] });
  assert.deepEqual((await it.events()).slice(2), [
    activationOf(fresh ?? it.old, 0),
    keyRetired({ keyId: it.old.keyId, effectiveAt, retiredAt: at(0) }),
  ]);
  assert.equal(it.log.stored.at(-1), 'SigningKeyActivated+SigningKeyRetired');
});

test('only the keys of that purpose give way; a second rotation takes the place of the first', async () => {
  const it = await office();
  await it.rotate('checkpoint');
  await it.rotate('receipt');
  await it.rotate('receipt');
  const { keys } = await loadKeyRing(it.deps);
  assert.deepEqual(
    keys.map(({ purpose, notAfter }) => `${purpose} ${notAfter === null}`),
    ['receipt false', 'checkpoint false', 'checkpoint true', 'receipt false', 'receipt true'],
  );
  assert.equal((await it.events()).length, 8);
});

test('where there is no checkpoint key one is added, and nothing retires', async () => {
  const it = await office(['receipt']);
  assert.deepEqual((await it.rotate('checkpoint')).retiring, []);
  assert.deepEqual(it.store.states(), ['checkpoint active', 'receipt active']);
  assert.deepEqual(await typesIn(it, KEYS), ['SigningKeyActivated', 'SigningKeyActivated']);
});

test('interrupted before the log had it: the key of the file is announced, and no second one is made', async () => {
  const it = await office();
  it.log.onNext('SigningKeyActivated', dies('before'));
  await assert.rejects(it.rotate(), Crash);
  const [ready] = it.store.read().keys;
  assert.equal((await it.rotate()).keyId, ready?.keyId);
  assert.deepEqual(it.store.states(), ['receipt active', 'receipt retired', 'checkpoint active']);
  assert.equal((await it.events()).length, 4);
});

test('ended before the file was marked: the next rotation marks all that the log has retired', async () => {
  const it = await office();
  it.log.onNext('SigningKeyActivated', dies('after'));
  await assert.rejects(it.rotate(), Crash);
  await it.rotate('checkpoint');
  assert.deepEqual(it.store.states(), [
    'checkpoint active',
    'receipt active',
    'receipt retired',
    'checkpoint retired',
  ]);
});

test('two rotations at once with one file: one key, announced once', async () => {
  const it = await office();
  it.log.onNext(
    'SigningKeyActivated',
    afterOthers(() => it.rotate()),
  );
  const second = await it.rotate();
  assert.equal(second.keyId, it.store.read().keys[0]?.keyId);
  assert.deepEqual(it.store.states(), ['receipt active', 'receipt retired', 'checkpoint active']);
  assert.equal((await it.events()).length, 4);
});

test('another change of keys in between: read again, then announced', async () => {
  const it = await office();
  it.log.onNext(
    'SigningKeyActivated',
    afterOthers(() => it.rotate('checkpoint')),
  );
  await it.rotate();
  assert.deepEqual(it.store.states().toSorted(), [
    'checkpoint active',
    'checkpoint retired',
    'receipt active',
    'receipt retired',
  ]);
});

test("the append's answer is lost: repeated, announced once", async () => {
  const it = await office();
  it.log.onNext('SigningKeyActivated', lostAnswer);
  await letPass(it.clock, it.rotate());
  assert.equal((await it.events()).length, 4);
});

test('a log that takes nothing: half a minute, then the key waits in the file', async () => {
  const it = await office();
  for (let n = 0; n < 100; n++) it.log.onNext('SigningKeyActivated', unavailable);
  await assert.rejects(letPass(it.clock, it.rotate()), LogTakesNothing);
  assert.deepEqual(it.store.states(), ['receipt active', 'receipt active', 'checkpoint active']);
});

test('a key file of another log is refused, and nothing is changed', async () => {
  const it = await office();
  it.store.put({ secretCheck: hex('4') });
  await assert.rejects(it.rotate(), KeyMismatch);
  assert.deepEqual(it.store.states(), ['receipt active', 'checkpoint active']);
  const empty = world();
  await assert.rejects(
    rotateKeys({ ...empty.deps, store: memoryKeyStore(storedKey()) }, 'receipt'),
    KeyMismatch,
  );
});

test('a file that cannot be changed: nothing is announced', async () => {
  const it = await office();
  const update = () => assert.fail('read-only');
  await assert.rejects(it.rotate('receipt', { ...it.store, update }), /read-only/);
  assert.equal((await it.events()).length, 2);
});

test('receipts that a clock ahead has signed stay valid: the retirement takes effect after the newest of them', async () => {
  const it = await office();
  const day = 86_400_000;
  const { keyId } = it.old;
  await given(it, 'job-a', receiptSigned({ keyId, signedAt: at(day) }));
  await given(it, 'job-b', receiptSigned({ keyId: commitment('z'), signedAt: at(9 * day) }));
  await given(it, 'job-c', receiptSigned({ keyId, signedAt: at(5) }));
  const { retiring } = await it.rotate();
  assert.deepEqual(retiring, [{ keyId, effectiveAt: at(day + GRACE) }]);
  const { keys } = await loadKeyRing(it.deps);
  const old = keys.find((key) => key.keyId === keyId) ?? assert.fail();
  assert.equal(keyValidAt(old, Math.floor(Date.parse(at(day)) / 1000)), true);
});

/** The store's clock is right, whatever those of the processes. */
const storedAt = (now: () => number) => world({ ...shared(), log: faultyLog([], memoryLog({ now })) });

test('a call of a process whose clock is ahead is under way: its receipt will be within the window of the old key', async () => {
  const it = await office(
    ['receipt'],
    storedAt(() => T0),
  );
  const aheadMs = 1_570_000;
  await given(it, 'job-a', jobStarted({ startedAt: at(aheadMs) }));
  const { retiring } = await it.rotate();
  assert.deepEqual(retiring, [{ keyId: it.old.keyId, effectiveAt: at(aheadMs + GRACE) }]);
});

test('a process whose clock is ahead was idle: what it signs before it reads of the rotation is within the window', async () => {
  let now = T0;
  const it = await office(
    ['receipt'],
    storedAt(() => now),
  );
  const [aheadMs, idleMs] = [1_570_000, 1_200_000];
  await given(it, 'job-a', receiptSigned({ keyId: it.old.keyId, signedAt: at(aheadMs) }));
  now += idleMs;
  it.clock.advance(idleMs);
  const { retiring } = await it.rotate();
  assert.deepEqual(retiring, [{ keyId: it.old.keyId, effectiveAt: at(idleMs + aheadMs + GRACE) }]);
});

test('a clock that was ahead long ago changes nothing', async () => {
  let now = T0;
  const it = await office(
    ['receipt'],
    storedAt(() => now),
  );
  await given(it, 'job-a', receiptSigned({ keyId: commitment('z'), signedAt: at(86_400_000) }));
  now += 7_200_000;
  it.clock.advance(7_200_000);
  const { retiring } = await it.rotate();
  assert.deepEqual(retiring, [{ keyId: it.old.keyId, effectiveAt: at(7_200_000 + GRACE) }]);
});

test('a receipt of a clock ahead is stored while the rotation is repeated: it stays valid', async () => {
  const it = await office();
  const { keyId } = it.old;
  const day = 86_400_000;
  const meanwhile = async () => {
    await given(it, 'job-a', receiptSigned({ keyId, signedAt: at(day) }));
    await it.rotate('checkpoint');
  };
  it.log.onNext('SigningKeyActivated', afterOthers(meanwhile));
  const { retiring } = await it.rotate();
  assert.deepEqual(retiring, [{ keyId, effectiveAt: at(day + GRACE) }]);
});
