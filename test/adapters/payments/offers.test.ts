// Signed offers and payment receipts across a key rotation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assetOf, paymentTerms, pricingOf } from '#src/adapters/payments/requirements.ts';
import { challengeBuilder, settlementHeaders } from '#src/adapters/payments/responses.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import type { Settlement } from '#src/ports/payment-protocol.ts';
import type { SigningKey } from '#src/ports/signer.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { BASE_URL, PAY_TO, UNREACHABLE_URL } from './lab.ts';

const DID = 'did:web:relay.example';
const [old, fresh] = [testKey(), testKey()];
const ROTATED_MS = 1_767_323_045_000;

const settings = {
  payTo: PAY_TO,
  facilitatorUrl: UNREACHABLE_URL,
  network: 'eip155:8453',
  priceUsd: '0.003',
  asset: null,
  rpcUrl: UNREACHABLE_URL,
  facilitatorTimeoutMs: 5000,
  login: null,
};
const asset = assetOf(settings);
const terms = paymentTerms(settings, asset, asset.known ?? assert.fail());
const pricing = pricingOf(terms, BASE_URL, PAID_ROUTES);
const settlement: Settlement = {
  route: 'execute/webhook',
  payment: {
    scheme: 'exact',
    network: 'eip155:8453',
    asset: terms.asset,
    amount: '3000',
    payTo: PAY_TO,
    payer: `0x${'3'.repeat(40)}`,
    transaction: `0x${'4'.repeat(64)}`,
    payloadHash: '5'.repeat(64),
  },
  x402Version: 2,
  delivered: true,
  completedAt: new Date(ROTATED_MS - 5000).toISOString(),
};

/** A relay that signs with `now`, and with `before` for documents issued before the rotation. */
const relay = (now: SigningKey, before: SigningKey | null) => ({
  pricing,
  offerKey: {
    signer: { current: () => now, former: (at: number) => (at < ROTATED_MS ? before : now) },
    did: DID,
  },
});

const decoded = (header: string | undefined): unknown =>
  JSON.parse(Buffer.from(header ?? '', 'base64').toString('utf8'));

const responseOf = async (deps: ReturnType<typeof relay>) =>
  decoded((await settlementHeaders(deps)(settlement))['PAYMENT-RESPONSE']);

/** The `kid` of each JWS in it. */
function kidsIn(value: unknown): string[] {
  const found = JSON.stringify(value).match(/[\w-]+\.[\w-]+\.[\w-]{86}/g) ?? [];
  return found.map((jws) => JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()).kid);
}

test('the offer of a run of a schedule is signed for its own terms', async () => {
  const challenge = challengeBuilder({ ...relay(fresh, old), clock: systemClock() });
  const ticket = {
    path: '/api/schedules/webhook',
    description: 'run 1',
    maxTimeoutSeconds: 4242,
    run: { n: 1, dueAt: '2026-03-01T08:00:00.000Z' },
    inputSchema: {},
    inputExample: {},
    outputExample: {},
  };
  const { headers } = await challenge({
    route: 'execute/webhook',
    reason: 'payment_required',
    message: null,
    hints: [],
    ticket,
  });
  const { accepts, extensions } = decoded(headers['PAYMENT-REQUIRED']) as {
    readonly accepts: readonly { readonly maxTimeoutSeconds: number }[];
    readonly extensions: { readonly 'scheduled-run'?: { readonly info: unknown } };
  };
  assert.deepEqual(extensions['scheduled-run']?.info, ticket.run);
  assert.deepEqual(kidsIn(extensions), [`${DID}#${fresh.keyId}`]);
  const [jws = ''] = JSON.stringify(extensions).match(/[\w-]+\.[\w-]+\.[\w-]{86}/) ?? [];
  const offer: unknown = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
  assert.equal(accepts[0]?.maxTimeoutSeconds, 4242);
  assert.match(JSON.stringify(offer), /schedules\/webhook/);
});

test('the receipt of a payment is the same text after its key was rotated', async () => {
  const first = await responseOf(relay(old, old));
  assert.deepEqual(kidsIn(first), [`${DID}#${old.keyId}`]);
  assert.deepEqual(await responseOf(relay(fresh, old)), first);
});

test('a rotated key that is no longer in the key file signs no receipt, and no other key was valid then', async () => {
  assert.deepEqual(kidsIn(await responseOf(relay(fresh, null))), []);
});
