import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyEvent } from '#src/domain/events.ts';
import { evolveKeys, fromJwkSet, type KeyRecord, keyValidAt, toJwk } from '#src/domain/signing-keys/keys.ts';
import { givenKeys } from '#test/support/given/given.ts';
import { at, commitment, keyActivated, keyRetired, T0 } from '#test/support/given/given-events.ts';

const second = T0 / 1000;
const keysAfter = (...events: KeyEvent[]) => givenKeys(...events).state;
const valid = (iat: number, ...events: KeyEvent[]) => keysAfter(...events).map((key) => keyValidAt(key, iat));

test('a key is valid from its activation on, in whole seconds', () => {
  assert.deepEqual(valid(second - 1, keyActivated()), [false]);
  assert.deepEqual(valid(second, keyActivated()), [true]);
  assert.deepEqual(valid(second, keyActivated({ activatedAt: at(999) })), [true]);
  assert.deepEqual(valid(second + 10 ** 9, keyActivated()), [true]);
});

test('a retired key stays valid for what was issued up to the moment its retirement takes effect', () => {
  assert.deepEqual(valid(second + 600, keyActivated(), keyRetired()), [true]);
  assert.deepEqual(valid(second + 601, keyActivated(), keyRetired()), [false]);
});

test('a compromised key is trusted for nothing issued from the moment of the compromise on', () => {
  const compromised = keyRetired({ reason: 'compromised', compromisedAt: at(60_000) });
  assert.deepEqual(valid(second + 59, keyActivated(), compromised), [true]);
  assert.deepEqual(valid(second + 60, keyActivated(), compromised), [false]);
});

test('a key of checkpoints signs no receipts', () => {
  assert.deepEqual(valid(second, keyActivated({ purpose: 'checkpoint' })), [false]);
});

test('keys are never removed and keep the order of activation; a second activation changes nothing', () => {
  const other = keyActivated({ keyId: commitment('o'), activatedAt: at(5000) });
  const keys = keysAfter(
    keyActivated(),
    other,
    keyRetired(),
    keyActivated({ activatedAt: at(9000), x: commitment('y') }),
  );
  assert.deepEqual(keys, [
    {
      keyId: commitment('k'),
      purpose: 'receipt',
      x: commitment('x'),
      notBefore: second,
      notAfter: second + 600,
      compromisedAt: null,
    },
    {
      keyId: commitment('o'),
      purpose: 'receipt',
      x: commitment('x'),
      notBefore: second + 5,
      notAfter: null,
      compromisedAt: null,
    },
  ]);
});

test('a retirement of an unknown key changes nothing', () => {
  assert.deepEqual(
    keysAfter(keyActivated(), keyRetired({ keyId: commitment('o') })),
    keysAfter(keyActivated()),
  );
});

test('a later retirement never extends an earlier end', () => {
  const compromised = keyRetired({
    reason: 'compromised',
    effectiveAt: at(60_000),
    compromisedAt: at(30_000),
  });
  const plain = keyRetired({ effectiveAt: at(900_000) });
  for (const order of [
    [compromised, plain],
    [plain, compromised],
  ] as const) {
    const [key] = keysAfter(keyActivated(), ...order);
    assert.deepEqual([key?.notAfter, key?.compromisedAt], [second + 60, second + 30]);
  }
});

test('a JWK set contains exactly what the event log contains', () => {
  const keys = [
    ...keysAfter(keyActivated(), keyRetired({ compromisedAt: at(30_000) })),
    ...keysAfter(keyActivated({ keyId: commitment('c'), purpose: 'checkpoint' })),
  ];
  const set = JSON.parse(JSON.stringify({ keys: keys.map(toJwk) }));
  assert.deepEqual(fromJwkSet(set), keys);
  assert.deepEqual(set.keys[1], {
    kty: 'OKP',
    crv: 'Ed25519',
    kid: commitment('c'),
    x: commitment('x'),
    use: 'sig',
    alg: 'EdDSA',
    purpose: 'checkpoint',
    nbf: second,
  });
});

test('other keys of a JWK set are ignored; null if it is no JWK set', () => {
  const [key] = keysAfter(keyActivated()) as readonly [KeyRecord];
  const good = toJwk(key);
  const set = {
    keys: [
      { kty: 'EC' },
      { ...good, x: 'short' },
      { ...good, crv: 'X25519' },
      { ...good, use: 'enc' },
      { ...good, nbf: 'soon' },
      null,
      good,
    ],
  };
  assert.deepEqual(fromJwkSet(set), [key]);
  for (const value of [null, undefined, 7, 'x', [], {}, { keys: {} }, { keys: null }])
    assert.equal(fromJwkSet(value), null);
});

test('a bare JWK without window or purpose is a receipt key that is always valid', () => {
  const bare = { kty: 'OKP', crv: 'Ed25519', kid: 'k', x: commitment('x') };
  assert.deepEqual(fromJwkSet({ keys: [bare] }), [
    { keyId: 'k', purpose: 'receipt', x: commitment('x'), notBefore: 0, notAfter: null, compromisedAt: null },
  ]);
});

test('folding is the same one by one', () => {
  assert.deepEqual(
    evolveKeys(evolveKeys([], keyActivated()), keyRetired()),
    keysAfter(keyActivated(), keyRetired()),
  );
});
