// Checks an offer of the service's own adapter: valid, expired, signed at another time or by another key.
// test/cli/pay-checks.test.ts covers offers that a relay has changed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { checkOffer } from '#src/adapters/buyer/offer.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { BASE_URL, lab, offerKey, PAY_TO } from '#test/adapters/payments/lab.ts';
import { manualClock } from '#test/support/fakes.ts';
import { testKey } from '#test/support/primitives.ts';

const NOW = Date.parse('2026-03-01T00:00:00.000Z');
const DID = 'did:web:relay.example';
const resourceUrl = `${BASE_URL}/api/execute/webhook`;
const LIMITS = { maxPriceMicroUsd: 3000n, network: 'eip155:8453', payTo: PAY_TO, resourceUrl };

async function required() {
  const { protocol } = await lab({ clock: manualClock(NOW) });
  const asked = { route: 'execute/webhook', reason: 'payment_required', hints: [] } as const;
  const { headers } = await protocol.challenge(asked);
  const client = new x402HTTPClient(new x402Client());
  return client.getPaymentRequiredResponse((name) => headers[name.toUpperCase()] ?? null);
}
async function offerFound(changes: Partial<KeyRecord> = {}, nowMs = NOW, did = DID) {
  const key = { ...offerKey.record, notBefore: NOW / 1000 - 60, ...changes };
  const { findings } = await checkOffer(await required(), LIMITS, { did, keys: [key] }, nowMs);
  const others = findings.filter(({ name }) => name !== 'signed_offer');
  assert.ok(others.every(({ ok }) => ok));
  const found = findings.find(({ name }) => name === 'signed_offer');
  return [found?.ok, found?.offered];
}

test('an offer of this relay is accepted', async () => {
  assert.deepEqual(await offerFound(), [true, `signed by ${DID}#${offerKey.keyId}`]);
});

test('an expired offer is refused', async () => {
  assert.equal((await offerFound({}, NOW + 299_000))[0], true);
  assert.deepEqual(await offerFound({}, NOW + 300_000), [false, 'it has expired']);
});

test('only a currently valid key of the relay is accepted, and only under the relay’s name', async () => {
  const retired = await offerFound({ notAfter: NOW / 1000 - 1 });
  const early = await offerFound({ notBefore: NOW / 1000 + 1 });
  const compromised = await offerFound({ compromisedAt: NOW / 1000 });
  const otherUse = await offerFound({ purpose: 'checkpoint' });
  for (const [ok, why] of [retired, early, compromised, otherUse]) {
    assert.deepEqual(
      [ok, String(why).endsWith('is not a valid key of the relay at that time')],
      [false, true],
    );
  }
  assert.deepEqual(await offerFound({ x: testKey().x }), [false, 'its signature is invalid']);
  assert.equal((await offerFound({}, NOW, 'did:web:other.example'))[0], false);
});
