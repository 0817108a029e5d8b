// An invalid payment is answered with the requirements; nothing is called or settled. A call that is refused for another
// reason is not charged either.
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
import { makePaidWorld, type PaidWorld } from '#test/support/paid-world.ts';
import {
  altered,
  cancellation,
  challenge,
  makePayment,
  newPayer,
  type Payment,
  resigned,
} from '#test/support/payer.ts';
import type { Service } from '#test/support/service.ts';
import { get } from '#test/support/service-world.ts';

const needs = needsAnvil();

describe('refused payments', () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld();
    service = await paid.start();
  });
  after(() => paid?.end());

  /** By the payment's identity, since the facilitator never receives most of them. */
  const settled = ({ nonce }: Payment) => paid.proxy.callsOf('settle', nonce).length;

  async function assertRefused(
    row: string,
    spoil: (payment: Payment) => Promise<Payment> | Payment,
  ): Promise<void> {
    const samples = await paid.samples(service, row);
    await each(samples, async (sample) => {
      const payment = await spoil(sample.payment);
      for (const version of [2, 1] as const) {
        const reason = assertAskedToPay(await sendPatiently(service, sample, { payment, version }));
        assert.notEqual(reason, 'payment_required', 'the reason is named');
      }
      assert.deepEqual([settled(payment), settled(sample.payment)], [0, 0]);
    });
    await paid.assertBooks(samples, { calls: 0, charges: 0 });
  }

  // One of each kind of check: of the terms, the signature and the time window.
  const REFUSED: readonly (readonly [string, (payment: Payment) => Promise<Payment> | Payment])[] = [
    [
      'to another payee, validly signed',
      (payment) =>
        resigned(payment, (authorization) => Object.assign(authorization, { to: newPayer().address })),
    ],
    [
      'the amount raised after the signature',
      (payment) =>
        altered(payment, (_, { authorization }) => Object.assign(authorization, { value: '3001' })),
    ],
    [
      'expired',
      (payment) =>
        resigned(payment, (authorization) =>
          Object.assign(authorization, { validBefore: String(Math.floor(Date.now() / 1000) - 1) }),
        ),
    ],
  ];
  for (const [title, spoil] of REFUSED) {
    test(`402, nothing called, nothing settled: ${title}`, needs, () => assertRefused(slug(title), spoil));
  }

  test('402: a payer without money', needs, async () => {
    const asked = await challenge(`${service.url}${EXECUTE}`);
    const samples = await paid.samples(service, 'poor');
    await each(samples, async (sample) => {
      const payment = await makePayment(newPayer(), asked);
      assertAskedToPay(await sendPatiently(service, sample, { payment }));
      assert.equal(settled(payment), 0);
    });
    await paid.assertBooks(samples, { calls: 0, charges: 0 });
  });

  test('402: an authorization that its payer has cancelled', needs, async () => {
    const samples = await paid.samples(service, 'cancelled');
    await each(samples, async (sample) => {
      const { payer, nonce } = sample.payment;
      await paid.chain.cancel(payer.address, nonce, await cancellation(sample.payment));
      assertAskedToPay(await sendPatiently(service, sample));
      assert.equal(settled(sample.payment), 0);
    });
    await paid.assertBooks(samples, { calls: 0, charges: 0 });
  });

  test(
    '400 with a payment and an invalid body: not charged; the same payment buys a good call',
    needs,
    async () => {
      const samples = await paid.samples(service, 'invalid-body');
      await each(samples, async (sample) => {
        for (const request of [
          {},
          { ...sample.request, timeoutMs: 5 },
          { ...sample.request, more: 1 },
          '{"url":',
        ]) {
          const sent = await send(service, sample, { request });
          assertSaid(sent, 400, 'invalid_request', 'invalid_json');
        }
        assert.equal(settled(sample.payment), 0);
        assertDelivered(await sendPatiently(service, sample), sample);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    },
  );

  test('400 for a refused target: not charged; the same payment buys a good call', needs, async () => {
    const samples = await paid.samples(service, 'refused-target');
    await each(samples, async (sample) => {
      const request = { ...sample.request, url: 'https://10.0.0.1/hook' };
      assertSaid(await sendPatiently(service, sample, { request }), 400, 'unsafe_target');
      assert.equal(settled(sample.payment), 0);
      assertDelivered(await sendPatiently(service, sample), sample);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('the service is healthy afterwards', needs, async () => {
    const { status, body } = await get<{ ok: boolean; mode: string }>(`${service.url}/health`);
    assert.deepEqual([status, body.ok, body.mode], [200, true, 'x402']);
    const bare = await fetch(`${service.url}${EXECUTE}`, { method: 'POST' });
    assert.equal(bare.status, 402);
  });
});

const slug = (title: string) => title.replace(/\W+/g, '-');
