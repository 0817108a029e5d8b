// The buyer's client, from source and as built, with a stock x402 client: in front of an honest relay, one that refuses, one
// that lies, and one in demo mode. What a purchase accepts is in test/buyer.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import * as source from '#src/client/client.ts';
import * as built from '#src/verify/built/client.js';
import { ANSWERED, changed, lyingRelay, PAY_TO } from '#test/support/witness/lying-relay.ts';
import { REQUEST, WALLETS } from '#test/support/world/buyer-world.ts';

type Client = {
  readonly relayClient: typeof built.relayClient;
  readonly RelayError: abstract new (...given: never[]) => built.RelayError;
};
const BOTH: Readonly<Record<string, Client>> = { source, built };

function wallet(): x402Client {
  const client = new x402Client();
  registerExactEvmScheme(client, { signer: privateKeyToAccount(WALLETS[0]) });
  return client;
}

for (const [name, { relayClient, RelayError }] of Object.entries(BOTH)) {
  function world(more: Partial<built.RelayClientOptions> = {}) {
    const failing = (request: { readonly url: string }) => (request.url.endsWith('/fails') ? 500 : 200);
    const relay = lyingRelay('https://relay.example', () => Date.now(), failing);
    const client = relayClient({
      relay: relay.origin,
      wallet: wallet(),
      maxPriceUsd: '0.003',
      network: 'eip155:8453',
      payTo: PAY_TO,
      send: relay.send,
      ...more,
    });
    return { relay, client };
  }
  const refusedWith = (code: built.RelayErrorCode, member: string | null) => (error: unknown) => {
    assert.ok(error instanceof RelayError, String(error));
    assert.deepEqual([error.name, error.code, error.member], ['RelayError', code, member]);
    assert.ok(error.message.startsWith(`${code}: `), error.message);
    return true;
  };

  describe(`the client, ${name}`, () => {
    test('a delivered call resolves with its verified receipt, and one payment was presented', async () => {
      const { relay, client } = world();
      const bought = await client.execute(REQUEST);
      assert.deepEqual([bought.outcome, bought.mode, bought.verification.ok], ['delivered', 'x402', true]);
      assert.deepEqual([bought.idempotentReplay, bought.earlierPayment], [false, false]);
      assert.equal(bought.payment?.payer, privateKeyToAccount(WALLETS[0]).address.toLowerCase());
      assert.equal(relay.presented.length, 1);
    });

    test('the answer of the target, on request: the bytes that the receipt commits to', async () => {
      const { client } = world();
      const asked = await client.execute(REQUEST, { returnResponse: true });
      assert.equal(Buffer.from(asked.response?.body ?? []).toString(), ANSWERED.body);
      const other = await client.execute({ ...REQUEST, idempotencyKey: 'order-2' });
      assert.equal(other.response, null);
    });

    test('a failed target resolves: the attempt was paid for, and has a receipt', async () => {
      const { client } = world();
      const { outcome, job } = await client.execute({ ...REQUEST, url: 'https://target.example/fails' });
      assert.deepEqual([outcome, job.responseStatus], ['target_failed', 500]);
    });

    test('an offer beyond the limits is refused before anything is signed', async () => {
      for (const [more, member] of [
        [{ maxPriceUsd: '0.002' }, 'offer.price'],
        [{ network: 'eip155:1' }, 'offer.network'],
        [{ payTo: `0x${'9'.repeat(40)}` }, 'offer.pay_to'],
        [{ allowHosts: ['*.other.example'] }, 'offer.target_host'],
      ] as const) {
        const { relay, client } = world(more);
        await assert.rejects(client.execute(REQUEST), refusedWith('policy_refused', member));
        assert.equal(relay.presented.length, 0);
      }
    });

    test('a receipt of another payment is no purchase: the member is named, and the payment is returned', async () => {
      const { relay, client } = world();
      relay.lie({ payload: (payload) => changed(payload, 'payment.amount', '1') });
      await assert.rejects(client.execute(REQUEST), (error) => {
        refusedWith('unverified', 'receipt.payment.amount')(error);
        assert.ok(error instanceof RelayError && error.payment?.value);
        return true;
      });
    });

    test('a relay that cannot be reached, and an order that no relay takes: nothing is signed', async () => {
      const away = world({ send: () => Promise.reject(new Error('no answer')) });
      await assert.rejects(away.client.execute(REQUEST), refusedWith('not_sent', null));
      const { relay, client } = world();
      await assert.rejects(client.execute({ url: 'nothing' }), refusedWith('not_sent', null));
      assert.equal(relay.presented.length, 0);
    });

    test('an option that cannot be used throws a TypeError', () => {
      for (const more of [
        { relay: 'http://relay.example' },
        { relay: 'https://relay.example/path' },
        { maxPriceUsd: 'little' },
        { payTo: '0x1' },
        { allowHosts: ['a b'] },
        { keys: {} },
      ])
        assert.throws(() => world(more), { name: 'TypeError' });
    });
  });
}
