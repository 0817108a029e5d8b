// A buyer in front of a relay that may lie, without HTTP and without waiting: what a purchase comes to, and how many payments
// were signed and presented.
import assert from 'node:assert/strict';
import { type CallResult, type Order, purchase } from '#src/buyer/purchase.ts';
import { keyPayer } from '#src/buyer/wallet.ts';
import { primitives, type TestKey } from '#test/support/given/primitives.ts';
import { type LyingRelay, lyingRelay, PAY_TO } from '#test/support/witness/lying-relay.ts';
import { letPass, manualClock } from './fakes.ts';

export const WALLETS = [`0x${'a1'.repeat(32)}`, `0x${'b2'.repeat(32)}`] as const;

export const REQUEST: Order['request'] = {
  url: 'https://target.example/hook?x=1#part',
  method: 'PUT',
  headers: { 'X-Order': '1', Accept: 'text/plain' },
  body: { order: 4711, text: 'ü' },
  idempotencyKey: 'order-4711',
};

export type Bought = { readonly result: CallResult; readonly signed: number; readonly presented: number };

export function buyerWorld() {
  const manual = manualClock();
  // The stock client reads the machine's clock.
  const clock = { ...manual, now: () => Date.now() + manual.monotonic() };
  const failing = (request: { readonly url: string }) => (request.url.endsWith('/fails') ? 500 : 200);
  const relay = lyingRelay('https://relay.example', () => clock.now(), failing);
  async function buy(change: Partial<Order> = {}, wallet: `0x${string}` = WALLETS[0]): Promise<Bought> {
    const before = relay.presented.length;
    const payer = keyPayer(wallet);
    let signed = 0;
    const counted: typeof payer = {
      ...payer,
      pay(...asked) {
        signed++;
        return payer.pay(...asked);
      },
    };
    const order: Order = {
      relay: relay.origin,
      request: REQUEST,
      limits: { maxPriceMicroUsd: 3000n, network: 'eip155:8453', payTo: PAY_TO, allowHosts: null },
      payer: counted,
      keys: null,
      repeatable: false,
      ...change,
    };
    const deps = { send: relay.send, clock, primitives, waiting: () => undefined, ledger: null };
    const result = await letPass(manual, purchase(deps, order));
    const headers = relay.presented.slice(before);
    assert.ok(new Set(headers).size <= 1, 'one payment is presented');
    return { result, signed, presented: headers.length };
  }
  return { clock, relay, buy };
}

export const good = ({ result }: Bought): void => {
  assert.equal(result.error, null, result.error?.message ?? '');
  assert.equal(result.outcome, 'delivered');
};
/** The first payment, as JSON. */
export const decoded = ({ presented: [first = ''] }: LyingRelay) =>
  Buffer.from(first, 'base64').toString('utf8');
export const membersOf = ({ evidence, error }: CallResult) =>
  evidence?.mismatches.map(({ member }) => member) ?? [error?.member];

export const jwkOf = ({ keyId, x }: TestKey) => ({ kty: 'OKP', crv: 'Ed25519', kid: keyId, x });
