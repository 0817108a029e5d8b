// Signed offers and payment receipts over a rotation of keys.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentRequired } from '@x402/core/types';
import { type Offers, type PaidFacts, signedOffers } from '#src/adapters/payments/offers.ts';
import type { SigningKey } from '#src/ports/signer.ts';
import { testKey } from '#test/support/primitives.ts';

const DID = 'did:web:relay.example';
const [old, fresh] = [testKey(), testKey()];
const ROTATED_MS = 1_767_323_045_000;

const requirements = {
  scheme: 'exact',
  network: 'eip155:8453',
  asset: `0x${'1'.repeat(40)}`,
  amount: '3000',
  payTo: `0x${'2'.repeat(40)}`,
  maxTimeoutSeconds: 300,
  extra: {},
} as const;
const required: PaymentRequired = {
  x402Version: 2,
  resource: {
    url: 'https://relay.example/api/execute/webhook',
    description: '',
    mimeType: 'application/json',
  },
  accepts: [requirements],
};
const paid: PaidFacts = {
  resourceUrl: required.resource.url,
  requirements,
  payer: `0x${'3'.repeat(40)}`,
  network: 'eip155:8453',
  transaction: null,
  issuedAtMs: ROTATED_MS - 1000,
};

/** A relay that signs with `now`, and holds for what was issued before the rotation `before`. */
const relay = (now: SigningKey, before: SigningKey | null): Offers =>
  signedOffers({
    signer: { current: () => now, former: (at) => (at < ROTATED_MS ? before : now) },
    did: DID,
  });

/** The `kid` of each JWS in it. */
function kidsIn(value: unknown): string[] {
  const found = JSON.stringify(value).match(/[\w-]+\.[\w-]+\.[\w-]{86}/g) ?? [];
  return found.map((jws) => JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()).kid);
}

test('an offer names the key that signs now', async () => {
  assert.deepEqual(kidsIn(await relay(fresh, old).offer(required, ROTATED_MS)), [`${DID}#${fresh.keyId}`]);
});

test('the receipt of a payment stays the same text when the key that signed it has been rotated', async () => {
  const first = await relay(old, old).receipt(paid);
  assert.deepEqual(kidsIn(first), [`${DID}#${old.keyId}`]);
  assert.deepEqual(await relay(fresh, old).receipt(paid), first);
});

test('where that key is no longer held there is no receipt of the payment: no other key was valid then', async () => {
  assert.deepEqual(await relay(fresh, null).receipt(paid), {});
});
