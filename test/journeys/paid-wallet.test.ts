// Contract wallets (ERC-1271): their signatures are judged by the chain alone, so until it has, they are anybody's word.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/local-payments.ts';
import {
  assertAskedToPay,
  assertDelivered,
  assertSaid,
  EXECUTE,
  each,
  send,
  sendPatiently,
} from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { altered, challenge, makePayment, newPayer, type Payer } from '#test/support/payer.ts';
import type { Service } from '#test/support/service.ts';

const needs = needsAnvil();

/** Signs as the contract at an address; `ending`: what the contract does not look at. */
function walletOf(owner: Payer, address: Payer['address'], ending = '00'): Payer {
  const signTypedData: Payer['signTypedData'] = async (typed) =>
    `${await owner.signTypedData(typed)}${ending}`;
  return { ...owner, address, signTypedData };
}

describe('contract wallets', () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld({ rpc: true });
    service = await paid.start();
  });
  after(() => paid?.end());

  /** Every sample's payer is a contract of an owner of its own. */
  async function wallets(row: string): Promise<readonly (Sample & { readonly owner: Payer })[]> {
    const asked = await challenge(`${service.url}${EXECUTE}`);
    const samples = await paid.samples(service, row, { more: () => ({ idempotencyKey: 'key' }) });
    return each(samples, async (sample) => {
      const owner = newPayer();
      await paid.chain.placeWallet(sample.payer.address, owner.address);
      const payment = await makePayment(walletOf(owner, sample.payer.address), asked);
      return { ...sample, owner, payment };
    });
  }

  test(
    'one pays and is served once; a copy with another signature of the same authorization is no replay',
    needs,
    async () => {
      const samples = await wallets('wallet');
      await each(samples, async (sample) => {
        const { payment } = sample;
        const first = assertDelivered(await sendPatiently(service, sample), sample);
        const again = assertDelivered(await send(service, sample, { version: 1 }), sample, {
          version: 1,
          replay: true,
        });
        assert.deepEqual(again.job, first.job);
        // As good to the contract, and not what was paid with: whoever has read the chain could make it up.
        const copy = altered(payment, (_, signed) => {
          signed.signature = `${signed.signature.slice(0, -2)}01` as typeof signed.signature;
        });
        assertSaid(await send(service, sample, { payment: copy }), 409, 'payment_reused');
        assert.equal(paid.proxy.callsOf('settle', payment.nonce).length, 1);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    },
  );

  test(
    'a stranger who names one is asked to pay, also where it names the wallet’s key and request',
    needs,
    async () => {
      const asked = await challenge(`${service.url}${EXECUTE}`);
      const samples = await wallets('named');
      await each(samples, async (sample) => {
        assertDelivered(await sendPatiently(service, sample), sample);
        const forged = await makePayment(walletOf(newPayer(), sample.payer.address), asked);
        assertAskedToPay(await sendPatiently(service, sample, { payment: forged }));
        assert.equal(paid.proxy.callsOf('settle', forged.nonce).length, 0);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    },
  );

  test('the sixth call of one in a minute: 429', needs, async () => {
    const samples = await wallets('paced');
    await each(samples, async (sample) => {
      assertDelivered(await sendPatiently(service, sample), sample);
      for (let n = 0; n < 5; n++) {
        const sent = await send(service, sample);
        if (n < 4 && sent.status === 200) assertDelivered(sent, sample, { replay: true });
        else assertSaid(sent, 429, 'rate_limited');
      }
      assertSaid(await send(service, sample), 429, 'rate_limited');
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });
});
