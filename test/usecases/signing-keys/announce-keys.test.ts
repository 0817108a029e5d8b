import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HeldKey, KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import {
  activateSigningKeys,
  KeyMismatch,
  LogTakesNothing,
  loadKeyRing,
  type OwnKeys,
} from '#src/usecases/signing-keys/key-ring.ts';
import { commitment, hex, keyActivated, keyRetired, T0 } from '#test/support/given/given-events.ts';
import { afterOthers, lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
import { letPass } from '#test/support/world/fakes.ts';
import { given, typesIn, world } from '#test/support/world/fakes-world.ts';

const KEYS = 'keys-relay';
const held = (name: string, changes: Partial<HeldKey> = {}): HeldKey => ({
  keyId: commitment(name),
  purpose: 'receipt',
  status: 'active',
  x: commitment('x'),
  ...changes,
});
const ownOf = (...keys: readonly HeldKey[]): OwnKeys => ({ keys, secretCheck: hex('3') });
const own = ownOf(held('k'));
const ofCheckpoints = { purpose: 'checkpoint' } as const;
const checkpointKey = (name: string) => held(name, ofCheckpoints);
const mismatch = (word: RegExp) => (error: unknown) =>
  error instanceof KeyMismatch && word.test(error.message);

test('the first start announces its key, and signs only after it has read that', async () => {
  const it = world();
  let reads = 0;
  const readStream: EventLog['readStream'] = (...args) => {
    reads++;
    return it.log.readStream(...args);
  };
  const log = { ...it.log, readStream };
  const ring = await activateSigningKeys({ ...it.deps, log }, own);
  assert.deepEqual(
    (await it.log.readStream(KEYS)).map(({ type, data }) => ({ type, data })),
    [keyActivated()],
  );
  assert.equal(reads, 2);
  assert.deepEqual(ring.keys, [
    {
      keyId: commitment('k'),
      purpose: 'receipt',
      x: commitment('x'),
      notBefore: T0 / 1000,
      notAfter: null,
      compromisedAt: null,
    },
  ]);
});

test('a later start announces nothing', async () => {
  const it = world();
  await activateSigningKeys(it.deps, own);
  const ring = await activateSigningKeys(world(it.common).deps, own);
  assert.deepEqual(await typesIn(it, KEYS), ['SigningKeyActivated']);
  assert.equal(ring.keys[0]?.keyId, commitment('k'));
});

test('two first starts at once with one key file: one announcement, both run', async () => {
  const it = world();
  const rings = await Promise.all([
    activateSigningKeys(it.deps, own),
    activateSigningKeys(world(it.common).deps, own),
  ]);
  assert.deepEqual(await typesIn(it, KEYS), ['SigningKeyActivated']);
  assert.deepEqual(rings[0], rings[1]);
});

test('two first starts at once with two key files: the loser refuses to start', async () => {
  const it = world();
  const other = { keys: [held('o', { x: commitment('y') })], secretCheck: hex('4') };
  it.log.onNext(
    'SigningKeyActivated',
    afterOthers(() => activateSigningKeys(world(it.common).deps, other)),
  );
  await assert.rejects(activateSigningKeys(it.deps, own), mismatch(/secret/));
  assert.deepEqual(await typesIn(it, KEYS), ['SigningKeyActivated']);
});

test("the announcement's answer is lost: repeated, one announcement", async () => {
  const it = world();
  it.log.onNext('SigningKeyActivated', lostAnswer);
  await letPass(it.clock, activateSigningKeys(it.deps, own));
  assert.deepEqual(await typesIn(it, KEYS), ['SigningKeyActivated']);
});

for (const [why, word, key, events] of [
  ['another HMAC secret', /secret/, { ...own, secretCheck: hex('4') }, [keyActivated()]],
  ['a key that the log does not know', /not know/, ownOf(held('o')), [keyActivated()]],
  [
    'a key of the name but other bytes',
    /not know/,
    ownOf(held('k', { x: commitment('y') })),
    [keyActivated()],
  ],
  ['no active key for receipts', /no active/, ownOf(held('k', { status: 'retired' })), [keyActivated()]],
  ['no active key for receipts, in an empty log', /no active/, ownOf(checkpointKey('c')), []],
  ['a retired key', /retired/, own, [keyActivated(), keyRetired()]],
  [
    'a key that the log knows for checkpoints',
    /not know/,
    own,
    [keyActivated({ keyId: commitment('r') }), keyActivated({ purpose: 'checkpoint' })],
  ],
] as const) {
  test(`refuses to start with ${why}, and writes nothing`, async () => {
    const it = world();
    if (events.length > 0) await given(it, KEYS, ...events);
    await assert.rejects(activateSigningKeys(it.deps, key), mismatch(word));
    assert.equal((await it.log.readStream(KEYS)).length, events.length);
  });
}

test('a rotated key signs beside its retired predecessor', async () => {
  const it = world();
  const next = keyActivated({ keyId: commitment('n'), x: commitment('y') });
  await given(it, KEYS, keyActivated(), next, keyRetired());
  const ring = await activateSigningKeys(
    it.deps,
    ownOf(held('n', { x: commitment('y') }), held('k', { status: 'retired' })),
  );
  assert.deepEqual(
    ring.keys.map(({ notAfter }) => notAfter === null),
    [false, true],
  );
});

test('without a log there is no start', async () => {
  const it = world();
  it.log.setAway(true);
  await assert.rejects(activateSigningKeys(it.deps, own), EventLogUnavailable);
});

test('an event that cannot be read is a fault: a retirement must not be passed over', async () => {
  const it = world();
  await given(it, KEYS, keyActivated(), { type: 'SigningKeyRetired', data: { ...keyRetired().data, v: 2 } });
  await assert.rejects(loadKeyRing(it.deps), /SigningKeyRetired/);
});

test('a fault of the log at the announcement ends the start', async () => {
  const it = world();
  it.log.onNext('SigningKeyActivated', async () => {
    throw new TypeError('broken');
  });
  await assert.rejects(activateSigningKeys(it.deps, own), TypeError);
});

test('a log that is read and takes nothing is waited for half a minute, then the start is refused', async () => {
  const it = world();
  for (let n = 0; n < 100; n++) it.log.onNext('SigningKeyActivated', unavailable);
  await assert.rejects(letPass(it.clock, activateSigningKeys(it.deps, own)), LogTakesNothing);
  assert.ok(it.clock.monotonic() > 25_000 && it.clock.monotonic() <= 30_000, `${it.clock.monotonic()} ms`);
  assert.deepEqual(await typesIn(it, KEYS), []);
});

test('an empty log gets the key for receipts and that for checkpoints in one append', async () => {
  const it = world();
  await activateSigningKeys(it.deps, ownOf(checkpointKey('c'), held('k'), held('m')));
  assert.deepEqual(
    (await it.log.readStream(KEYS)).map(({ type, data }) => ({ type, data })),
    [keyActivated(), keyActivated({ keyId: commitment('c'), ...ofCheckpoints })],
  );
  assert.deepEqual(it.trace, ['SigningKeyActivated+SigningKeyActivated']);
});

test('an unannounced fresh key in front does not prevent a start, and the start does not announce it', async () => {
  const it = world();
  await given(it, KEYS, keyActivated());
  await activateSigningKeys(it.deps, ownOf(held('n'), held('k')));
  assert.deepEqual(await typesIn(it, KEYS), ['SigningKeyActivated']);
});

test('after a log that was given up: its keys keep their windows, and only what none signs for is new', async () => {
  const it = world();
  const record = (name: string, changes: Partial<KeyRecord> = {}): KeyRecord => ({
    keyId: commitment(name),
    purpose: 'receipt',
    x: commitment('x'),
    notBefore: T0 / 1000 - 9000,
    notAfter: null,
    compromisedAt: null,
    ...changes,
  });
  const earlier = [
    record('s', { notAfter: T0 / 1000 - 5000, compromisedAt: T0 / 1000 - 6000 }),
    record('r', { notAfter: T0 / 1000 - 4000 }),
    record('k'),
  ];
  const keys = ownOf(held('r', { status: 'retired' }), held('k'), checkpointKey('c'));
  const ring = await activateSigningKeys(it.deps, keys, earlier);
  const fresh = record('c', { purpose: 'checkpoint', notBefore: T0 / 1000 });
  assert.deepEqual(ring.keys, [...earlier, fresh]);
  assert.equal((await it.log.readStream(KEYS))[0]?.id, ring.logId);
  const again = await activateSigningKeys(world(it.common).deps, keys, ring.keys);
  assert.deepEqual(again, ring);
});

test('earlier keys that the file cannot sign with are no keys to begin with', async () => {
  const it = world();
  const stolen = { ...held('k'), purpose: 'receipt', notBefore: 0, notAfter: 1, compromisedAt: 0 } as const;
  await assert.rejects(activateSigningKeys(it.deps, own, [stolen]), mismatch(/no active key for receipts/));
  assert.deepEqual(await typesIn(it, KEYS), []);
});
