// Settlements of unknown outcome, with access to the chain: found settled, cancelled, spent on another payment, or never
// going to settle.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { SettleResponse } from '@x402/core/types';
import type { Hex } from 'viem';
import { generatePrivateKey } from 'viem/accounts';
import type { Fault } from '#test/support/fault-proxy.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { assertAskedToPay, assertDelivered, EXECUTE, each, sendPatiently } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { cancellation, challenge, makePayment, newPayer, resigned } from '#test/support/payer.ts';
import { type Service, waitFor } from '#test/support/service.ts';

const needs = needsAnvil();

describe('the chain decides', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  /** Settled, their answers lost; their authorizations expire while the other tests run. */
  let late: readonly Sample[];
  before(async () => {
    paid = await makePaidWorld();
    service = await paid.start();
    // A facilitator refuses authorizations that expire within 6 s.
    late = await paid.samples(service, 'late', { terms: { maxTimeoutSeconds: 20 } });
    await leaveUnknown(late, 'cut');
    await paid.assertBooks(late, { calls: 0, charges: 1 });
  });
  after(() => paid.end());

  const settles = ({ payment }: Pick<Sample, 'payment'>) => paid.proxy.callsOf('settle', payment.nonce);

  const leaveUnknown = (samples: readonly Sample[], fault: Fault) =>
    paid.leaveUnknown(samples, fault, (sample) => sendPatiently(service, sample));

  /** The payer signs something else by the same terms, and has it settled. */
  async function pays(
    { payment }: Sample,
    terms: { readonly to: Hex; readonly value?: string; readonly nonce?: Hex },
  ): Promise<void> {
    const { payload } = await resigned(payment, (authorization) => Object.assign(authorization, terms));
    const { value: amount = payload.accepted.amount, to: payTo } = terms;
    const paymentRequirements = { ...payload.accepted, amount, payTo };
    const body = JSON.stringify({ x402Version: 2, paymentPayload: payload, paymentRequirements });
    const settled = await fetch(`${paid.proxy.url}/settle`, { method: 'POST', body });
    assert.equal(((await settled.json()) as SettleResponse).success, true);
  }

  test('unknown, then cancelled by the payer: 402, and 402 from then on; the key is free for a new payment', async () => {
    const asked = await challenge(`${service.url}${EXECUTE}`);
    const samples = await paid.samples(service, 'cancelled', { more: () => ({ idempotencyKey: 'key' }) });
    await leaveUnknown(samples, 'json_500');
    await each(samples, async (sample) => {
      await paid.chain.cancel(sample.payer.address, sample.payment.nonce, await cancellation(sample.payment));
      assertAskedToPay(await sendPatiently(service, sample));
      assertAskedToPay(await sendPatiently(service, sample, { version: 1 }));
      assert.equal(settles(sample).length, 1);
    });
    await paid.assertBooks(samples, { calls: 0, charges: 0 });
    paid.proxy.rule(() => 'pass');
    await each(samples, async (sample) => {
      const payment = await makePayment(sample.payer, asked);
      assertDelivered(await sendPatiently(service, sample, { payment }), sample);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('unknown, then its nonce spent on another payee: 402, nothing called, nothing received', async () => {
    const samples = await paid.samples(service, 'elsewhere');
    await leaveUnknown(samples, 'json_500');
    const before = await paid.chain.balanceOf(paid.payTo);
    await each(samples, async (sample) => {
      const friend = newPayer().address;
      await pays(sample, { to: friend });
      assert.equal(await paid.chain.balanceOf(friend), 3000n);
      assertAskedToPay(await sendPatiently(service, sample));
      assertAskedToPay(await sendPatiently(service, sample));
      assert.equal(paid.hits(sample), 0);
    });
    assert.equal(await paid.chain.balanceOf(paid.payTo), before);
  });

  test('settled, answer lost, and the retry arrives later than validBefore: one call, charged once', async () => {
    const last = Math.max(...late.map(({ payment }) => payment.validBefore));
    await waitFor('all are past their end', () => Date.now() / 1000 > last + 1);
    await each(late, async (sample) => assertDelivered(await sendPatiently(service, sample), sample));
    await paid.assertBooks(late, { calls: 1, charges: 1 });
  });

  test('the payer’s balance is emptied between verify and settle: 402; refilled: the same payment buys one call', async () => {
    const samples = await paid.samples(service, 'emptied');
    const before = await paid.chain.balanceOf(paid.payTo);
    const drains = new Map(
      samples.map((sample) => [
        sample.payment.nonce.toLowerCase(),
        () => pays(sample, { to: newPayer().address, value: '30000', nonce: generatePrivateKey() }),
      ]),
    );
    paid.proxy.rule(async ({ kind, nonce, nth }) => {
      if (kind === 'settle' && nth === 1) await drains.get(nonce)?.();
      return 'pass' as const;
    });
    await each(samples, async (sample) => {
      assertAskedToPay(await sendPatiently(service, sample));
      assertAskedToPay(await sendPatiently(service, sample));
      assert.equal(paid.hits(sample), 0);
    });
    assert.equal(await paid.chain.balanceOf(paid.payTo), before);
    await paid.chain.mint(
      samples.map(({ payer }) => payer.address),
      30_000n,
    );
    await each(samples, async (sample) => {
      assertDelivered(await sendPatiently(service, sample), sample);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });
});
