// The local chain and facilitator, used by stock clients.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { HTTPFacilitatorClient } from '@x402/core/http';
import type { PaymentRequirements } from '@x402/core/types';
import { type LocalFacilitator, startLocalFacilitator } from '#src/demo/payments/facilitator.ts';
import { sleep } from '#src/lib/time.ts';
import { type ControlledChain, startControlledChain } from '#test/support/chain/controlled-chain.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import {
  makePayment,
  newPayer,
  type Payer,
  type Payment,
  requiring,
  termsOf,
} from '#test/support/chain/payer.ts';

const needs = needsAnvil();
/** By the stock client, from a challenge as in the header. */
const pay = (payer: Payer, asked: PaymentRequirements) => makePayment(payer, requiring(asked));

describe('the local chain and facilitator', needs, () => {
  let chain: ControlledChain;
  let local: LocalFacilitator;
  let facilitator: HTTPFacilitatorClient;
  const payers = Array.from({ length: 40 }, newPayer);
  const poor = newPayer();
  const [rich] = payers;

  before(async () => {
    chain = await startControlledChain();
    local = await startLocalFacilitator({ rpcUrl: chain.url });
    facilitator = new HTTPFacilitatorClient({ url: local.url });
    await chain.mint(
      payers.map(({ address }) => address),
      30_000n,
    );
  });
  after(async () => {
    await local.stop();
    await chain.stop();
  });

  test('settlements on a new chain, at once or shortly after each other: all succeed, each transfers its amount once', async () => {
    const asked = termsOf();
    const payments = await Promise.all(payers.map((payer) => pay(payer, asked)));
    const settling = payments.map(async (payment, n) => {
      // Concurrent ones would share one read of the next nonce.
      await sleep(n < 20 ? 0 : n * 6);
      return facilitator.settle(payment.payload, asked);
    });
    const answers = await Promise.all(settling);
    assert.deepEqual(
      answers.filter(({ success }) => !success),
      [],
    );
    assert.equal(new Set(answers.map(({ transaction }) => transaction)).size, 40);
    assert.equal(await chain.balanceOf(asked.payTo), 120_000n);
    for (const { address } of payers) assert.equal(await chain.balanceOf(address), 27_000n);
  });

  test('a good payment is valid and settles; it is used afterwards', async () => {
    assert.ok(rich);
    const asked = termsOf();
    const payment = await pay(rich, asked);
    const { nonce } = payment;
    assert.equal((await facilitator.verify(payment.payload, asked)).isValid, true);
    assert.equal(await chain.isSpent(rich.address, nonce), false);
    const settled = await facilitator.settle(payment.payload, asked);
    assert.deepEqual([settled.success, settled.payer, settled.network], [true, rich.address, 'eip155:8453']);
    assert.match(settled.transaction, /^0x[0-9a-f]{64}$/);
    assert.equal(await chain.isSpent(rich.address, nonce), true);
    const again = await facilitator.verify(payment.payload, asked);
    assert.deepEqual([again.isValid, again.invalidReason], [false, 'invalid_exact_evm_nonce_already_used']);
    const repeated = await facilitator.settle(payment.payload, asked);
    assert.deepEqual(
      [repeated.success, repeated.errorReason],
      [false, 'invalid_exact_evm_nonce_already_used'],
    );
    assert.equal(await chain.balanceOf(asked.payTo), 3000n);
  });

  test('refusals by code: another payee, another amount, no funds, a wrong domain', async () => {
    assert.ok(rich);
    const asked = termsOf();
    const payment = await pay(rich, asked);
    const refusal = async ({ payload }: Payment, changes: Partial<PaymentRequirements> = {}) =>
      (await facilitator.verify(payload, { ...asked, ...changes })).invalidReason;
    assert.deepEqual(
      [
        await refusal(payment, { payTo: poor.address }),
        await refusal(payment, { amount: '3001' }),
        await refusal(await pay(poor, asked)),
        await refusal(await pay(rich, { ...asked, extra: { name: 'USD Coin', version: '1' } })),
        await refusal(await pay(rich, { ...asked, maxTimeoutSeconds: 1 })),
      ],
      [
        'invalid_exact_evm_recipient_mismatch',
        'invalid_exact_evm_payload_authorization_value_mismatch',
        'invalid_exact_evm_insufficient_balance',
        'invalid_exact_evm_signature',
        'invalid_exact_evm_payload_authorization_valid_before',
      ],
    );
    assert.equal(await chain.balanceOf(asked.payTo), 0n);
  });
});
