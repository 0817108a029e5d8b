import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyPurpose } from '#src/domain/events/signing-keys.ts';
import type { KeyEvent } from '#src/domain/events.ts';
import {
  type HeldKey,
  keyThatSigns,
  keyValidAt,
  lastingKeys,
  replacedKeysThatSign,
  validFrom,
} from '#src/domain/signing-keys/keys.ts';
import { givenKeys } from '#test/support/given/given.ts';
import { at, commitment, keyActivated, keyRetired, T0 } from '#test/support/given/given-events.ts';

const held = (name: string, changes: Partial<HeldKey> = {}): HeldKey => ({
  keyId: commitment(name),
  purpose: 'receipt',
  status: 'active',
  x: commitment('x'),
  ...changes,
});
const activated = (name: string, ms = -60_000) =>
  keyActivated({ keyId: commitment(name), activatedAt: at(ms) });
const retired = (name: string, ms: number) =>
  keyRetired({ keyId: commitment(name), effectiveAt: at(ms), retiredAt: at(ms - 600_000) });
const compromised = (name: string, ms: number) =>
  keyRetired({
    keyId: commitment(name),
    reason: 'compromised',
    compromisedAt: at(ms),
    effectiveAt: at(600_000),
  });

/** The first letter of the key that signs `ms` after T0. */
function signs(
  keys: readonly HeldKey[],
  events: readonly KeyEvent[],
  ms = 0,
  purpose: KeyPurpose = 'receipt',
) {
  return keyThatSigns(keys, givenKeys(...events).state, purpose, T0 + ms)?.keyId[0] ?? null;
}

test('the first active key of the file signs', () => {
  const events = [activated('a'), activated('b')];
  assert.equal(signs([held('a'), held('b')], events), 'a');
  assert.equal(signs([held('b'), held('a')], events), 'b');
  assert.equal(signs([held('a', { status: 'retired' }), held('b')], events), 'b');
});

test('a key whose activation was not read signs nothing, nor does a namesake with other bytes', () => {
  assert.equal(signs([held('n'), held('a')], [activated('a')]), 'a');
  assert.equal(signs([held('n')], [activated('a')]), null);
  assert.equal(signs([held('a', { x: commitment('y') })], [activated('a')]), null);
});

test('each purpose has its own keys', () => {
  const events = [activated('a'), keyActivated({ keyId: commitment('c'), purpose: 'checkpoint' })];
  const keys = [held('c', { purpose: 'checkpoint' }), held('a')];
  assert.equal(signs(keys, events, 10_000), 'a');
  assert.equal(signs(keys, events, 10_000, 'checkpoint'), 'c');
  assert.equal(signs([held('a', { purpose: 'checkpoint' })], events, 0, 'checkpoint'), null);
  assert.equal(signs([held('c')], events), null);
});

test('a key signs from the second of its activation to the second of its end, by the clock of this process', () => {
  const events = [activated('a', 0), retired('a', 90_000)];
  const answers = [-1, 0, 90_999, 91_000].map((ms) => signs([held('a')], events, ms));
  assert.deepEqual(answers, [null, 'a', 'a', null]);
});

test('a compromised key signs nothing from the second of the compromise on', () => {
  const events = [activated('a'), compromised('a', 5000)];
  assert.deepEqual(
    [4999, 5000].map((ms) => signs([held('a')], events, ms)),
    ['a', null],
  );
});

test('a key without a retirement is preferred to one with a retirement', () => {
  const events = [activated('a'), activated('b'), retired('a', 600_000)];
  assert.equal(signs([held('a'), held('b')], events), 'b');
  assert.equal(signs([held('a')], events), 'a');
});

test('a fresh key waits until caches of the key set know it, while another is valid', () => {
  const events = [activated('a'), activated('b', 0), retired('a', 600_000)];
  const keys = [held('b'), held('a', { status: 'retired' })];
  const answers = [0, 179_999, 180_000, 600_000].map((ms) => signs(keys, events, ms));
  assert.deepEqual(answers, ['a', 'a', 'b', 'b']);
  assert.equal(signs([held('b')], events), 'b');
});

test('a fresh key signs at once where the one before it is compromised', () => {
  const events = [activated('a'), activated('b', 0), compromised('a', -1000)];
  assert.equal(signs([held('b'), held('a')], events), 'b');
});

test('what was issued before a rotation is said again by the key that signed it', () => {
  const events = [activated('a'), activated('b', 0), retired('a', 600_000)];
  const before = signs([held('a')], [activated('a')], -1000);
  assert.equal(signs([held('b'), held('a', { status: 'retired' })], events, -1000), before);
});

test('whatever signs, a receipt of that second verifies', () => {
  const events = [
    activated('a', 300),
    activated('b', 4700),
    retired('a', 8200),
    compromised('b', 20_900),
    activated('d', 19_100),
  ];
  const records = givenKeys(...events).state;
  let signed = 0;
  for (let ms = -2000; ms < 30_000; ms += 100) {
    const key = keyThatSigns([held('b'), held('a'), held('d')], records, 'receipt', T0 + ms);
    const record = records.find(({ keyId }) => keyId === key?.keyId);
    if (record === undefined) continue;
    signed++;
    assert.ok(keyValidAt(record, Math.floor((T0 + ms) / 1000)), `${key?.keyId[0]} at ${ms}`);
  }
  assert.equal(signed, 300);
});

test('lasting keys: active in the file, announced, not retired', () => {
  const events = [activated('a'), activated('b'), activated('r'), activated('o'), retired('o', 600_000)];
  const keys = [held('n'), held('a'), held('b'), held('r', { status: 'retired' }), held('o')];
  const lasting = (purpose: string) =>
    lastingKeys(keys, givenKeys(...events).state, purpose).map(({ keyId }) => keyId[0]);
  assert.deepEqual(lasting('receipt'), ['a', 'b']);
  assert.deepEqual(lasting('checkpoint'), []);
});

test('the instant from which a key is valid: of the held keys, the earliest that is to come and has not ended before', () => {
  const from = (keys: readonly HeldKey[], events: readonly KeyEvent[]) =>
    validFrom(keys, givenKeys(...events).state, 'receipt', T0);
  const seconds = (ms: number) => Math.floor((T0 + ms) / 1000);
  const later = [activated('a', 90_000), activated('b', 60_000), activated('c', 30_000)];
  assert.equal(from([held('a'), held('b')], later), seconds(60_000));
  assert.equal(from([held('a'), held('b', { purpose: 'checkpoint' })], later), seconds(90_000));
  assert.equal(from([held('b')], [activated('b', 60_000), retired('b', 50_000)]), null);
  assert.equal(from([held('d')], later), null);
  assert.equal(from([held('d')], [activated('d')]), null, 'it is valid already');
});

test('replaced checkpoint keys sign too: for 30 days, or until each witness knows the newest one, whichever is later', () => {
  const DAY = 86_400_000;
  const of = (name: string) => held(name, { purpose: 'checkpoint' });
  const active = (name: string) =>
    keyActivated({
      keyId: commitment(name),
      purpose: 'checkpoint',
      activatedAt: at(-60_000),
    });
  const { state: records } = givenKeys(
    active('a'),
    active('b'),
    active('c'),
    active('n'),
    retired('a', 0),
    retired('b', DAY),
    compromised('c', 2 * DAY),
  );
  const keys = ['a', 'b', 'c', 'n'].map(of);
  const also = (ms: number, isAccepted: boolean) =>
    replacedKeysThatSign(keys, records, commitment('n'), T0 + ms, isAccepted).map(({ keyId }) => keyId[0]);
  assert.deepEqual(also(2 * DAY, true), ['b', 'a']);
  assert.deepEqual(also(30 * DAY, true), ['b', 'a']);
  assert.deepEqual(also(30 * DAY + 1000, true), ['b']);
  assert.deepEqual(also(31 * DAY + 1000, true), []);
  // A witness may have accepted the oldest of them last.
  assert.deepEqual(also(30 * DAY + 1000, false), ['b', 'a']);
  assert.deepEqual(also(400 * DAY, false), ['b', 'a']);
  assert.deepEqual(
    replacedKeysThatSign([of('n')], records, commitment('n'), T0, false),
    [],
    'the file lacks it',
  );
});

test('of the replaced checkpoint keys, no more sign than every reader of a note accepts', () => {
  const names = [...'abcdefghijklmnopqrst'];
  const purpose = 'checkpoint' as const;
  const { state: records } = givenKeys(
    ...names.map((name) => keyActivated({ keyId: commitment(name), purpose, activatedAt: at(-60_000) })),
    ...names.slice(0, -1).map((name, n) => retired(name, n * 1000)),
  );
  const keys = names.map((name) => held(name, { purpose }));
  for (const isAccepted of [true, false])
    assert.deepEqual(
      replacedKeysThatSign(keys, records, commitment('t'), T0 + 60_000, isAccepted).map(
        ({ keyId }) => keyId[0],
      ),
      [...'srqponmlkjihgfe'],
    );
});
