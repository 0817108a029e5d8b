import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listKeys } from '#src/usecases/signing-keys/change-keys.ts';
import { at, keyRetired } from '#test/support/given/given-events.ts';
import { activationOf, storedKey } from '#test/support/world/fakes-keys.ts';
import { given, world } from '#test/support/world/fakes-world.ts';

test('every key of the log, then the keys of the file alone, with window and state', async () => {
  const it = world();
  const receiptKey = () => storedKey().keyId;
  const [active, retiring, retired, compromised] = [receiptKey(), receiptKey(), receiptKey(), receiptKey()];
  const checkpoint = storedKey('checkpoint');
  const keys = [active, retiring, retired, compromised].map((keyId) => storedKey('receipt', { keyId }));
  const since = at(-1000);
  await given(
    it,
    'keys-relay',
    ...[...keys, checkpoint].map((key) => activationOf(key, -60_000)),
    keyRetired({ keyId: retiring, effectiveAt: at(0) }),
    keyRetired({ keyId: retired, effectiveAt: at(-1000) }),
    keyRetired({ keyId: compromised, reason: 'compromised', compromisedAt: since, effectiveAt: at(600_000) }),
  );
  const fresh = storedKey('witness');
  const held = [
    fresh,
    ...keys.slice(0, 1),
    ...keys.slice(1, 2).map((key) => ({ ...key, status: 'retired' as const })),
  ];
  const notBefore = at(-60_000);
  const open = { purpose: 'receipt', notBefore, notAfter: null, compromisedAt: null, inFile: null };
  assert.deepEqual(await listKeys(it, held), [
    { ...open, keyId: active, state: 'active', inFile: 'active' },
    { ...open, keyId: retiring, state: 'retiring', notAfter: at(0), inFile: 'retired' },
    { ...open, keyId: retired, state: 'retired', notAfter: at(-1000) },
    { ...open, keyId: compromised, state: 'compromised', notAfter: at(600_000), compromisedAt: since },
    { ...open, keyId: checkpoint.keyId, purpose: 'checkpoint', state: 'active' },
    {
      ...open,
      keyId: fresh.keyId,
      purpose: 'witness',
      state: 'unannounced',
      notBefore: null,
      inFile: 'active',
    },
  ]);
});
