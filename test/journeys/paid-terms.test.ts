// The operator changes price and payee: earlier payments are served at the terms that they paid, and charged once; and one
// nonce is one authorization.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/local-payments.ts';
import {
  assertAskedToPay,
  assertDelivered,
  assertSaid,
  EXECUTE,
  each,
  sendPatiently,
} from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { altered, challenge, makePayment, newPayer, type Payment, resigned } from '#test/support/payer.ts';
import type { Service } from '#test/support/service.ts';

const needs = needsAnvil();
const NEW_PRICE = '5000';

describe('other terms than before', () => {
  let paid: PaidWorld;
  let service: Service;
  const payee = newPayer().address;
  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld();
    service = await paid.start();
  });
  after(() => paid?.end());

  const moved = ({ nonce }: Payment) =>
    paid.proxy.callsOf('settle', nonce).filter((call) => call.moved).length;

  test(
    'two authorizations on one nonce: the second is payment_reused and never settled, before and after the first is',
    needs,
    async () => {
      const samples = await paid.samples(service, 'one-nonce');
      const others = new Map(
        await each(samples, async (sample) => [sample, await othersOf(sample)] as const),
      );
      paid.proxy.rule(({ kind, nth }) => (kind === 'settle' && nth === 1 ? 'json_500' : 'pass'));
      const assertReused = (sample: Sample) =>
        each(others.get(sample) ?? [], async (payment) => {
          for (const version of [1, 2] as const) {
            assertSaid(await sendPatiently(service, sample, { payment, version }), 409, 'payment_reused');
          }
        });
      await each(samples, async (sample) => {
        assertSaid(await sendPatiently(service, sample), 503, 'payment_unconfirmed');
        await assertReused(sample);
        assert.equal(paid.proxy.callsOf('settle', sample.payment.nonce).length, 1);
      });
      await paid.assertBooks(samples, { calls: 0, charges: 0 });
      await each(samples, async (sample) => {
        assertDelivered(await sendPatiently(service, sample), sample);
        await assertReused(sample);
        assertDelivered(await sendPatiently(service, sample), sample, { replay: true });
        assert.equal(paid.proxy.callsOf('settle', sample.payment.nonce).length, 2);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    },
  );

  test('two authorizations on one nonce at once: one is settled and served', needs, async () => {
    paid.proxy.rule(() => 'pass');
    const samples = await paid.samples(service, 'nonce-race');
    await each(samples, async (sample) => {
      const [, later] = await othersOf(sample);
      const both = await Promise.all([
        sendPatiently(service, sample),
        sendPatiently(service, sample, { payment: later }),
      ]);
      const statuses = both.map(({ status }) => status);
      assert.deepEqual(statuses.toSorted(), [200, 409], JSON.stringify(both.map(({ body }) => body)));
      for (const sent of both) {
        if (sent.status === 200) assertDelivered(sent, sample);
        else assertSaid(sent, 409, 'payment_reused');
      }
      assert.equal(paid.proxy.callsOf('settle', sample.payment.nonce).length, 1);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test(
    'price and payee change: charged calls are served, served ones replay, and only new payments have the new terms',
    needs,
    async () => {
      const lost = await paid.samples(service, 'lost');
      const unsettled = await paid.samples(service, 'unsettled');
      const done = await paid.samples(service, 'done');
      const late = await paid.samples(service, 'late');
      const present = (sample: Sample) => sendPatiently(service, sample);
      await paid.leaveUnknown(lost, 'cut', present);
      await paid.assertBooks(lost, { calls: 0, charges: 1 });
      await paid.leaveUnknown(unsettled, 'json_500', present);
      await paid.assertBooks(unsettled, { calls: 0, charges: 0 });
      paid.proxy.rule(() => 'pass');
      const served = await each(done, async (sample) =>
        assertDelivered(await sendPatiently(service, sample), sample),
      );
      await paid.assertBooks(done, { calls: 1, charges: 1 });

      await service.stop();
      service = await paid.start({ X402_PRICE: '$0.005', X402_PAY_TO: payee });
      const asked = await challenge(`${service.url}${EXECUTE}`);
      const [terms] = asked.accepts;
      assert.deepEqual([terms?.amount, terms?.payTo], [NEW_PRICE, payee]);

      // What the answers say of amount and payee is compared with the receipt by assertDelivered.
      await each(lost, async (sample) => {
        const { payment } = assertDelivered(await sendPatiently(service, sample), sample);
        assertPaidAtOldTerms(payment);
        assert.equal(moved(sample.payment), 1);
      });
      await each(unsettled, async (sample) => {
        assertPaidAtOldTerms(assertDelivered(await sendPatiently(service, sample), sample).payment);
      });
      await each(done, async (sample, n) => {
        for (const version of [2, 1] as const) {
          const again = assertDelivered(await sendPatiently(service, sample, { version }), sample, {
            replay: true,
            version,
          });
          assert.deepEqual([again.job.id, again.payment], [served[n]?.job.id, served[n]?.payment]);
        }
      });
      await each(late, async (sample) => {
        for (const version of [2, 1] as const) {
          const reason = assertAskedToPay(await sendPatiently(service, sample, { version }));
          assert.match(reason, /recipient_mismatch|amount_mismatch/);
        }
        assert.deepEqual(
          [
            ...paid.proxy.callsOf('verify', sample.payment.nonce),
            ...paid.proxy.callsOf('settle', sample.payment.nonce),
          ],
          [],
        );
      });
      for (const samples of [unsettled, lost, done]) {
        await paid.assertBooks(samples, { calls: 1, charges: 1 });
      }
      await paid.assertBooks(late, { calls: 0, charges: 0 });
      assert.equal(await paid.chain.balanceOf(payee), 0n, 'nothing of before went to the new payee');

      await each(late, async (sample) => {
        const payment = await makePayment(sample.payer, asked);
        const sent = await sendPatiently(service, sample, { payment });
        assert.equal(sent.status, 200, JSON.stringify(sent.body));
        const { amount, payTo } = sent.body.payment as Terms;
        assert.deepEqual([amount, payTo], [NEW_PRICE, payee.toLowerCase()]);
      });
      assert.equal(await paid.chain.balanceOf(payee), BigInt(NEW_PRICE) * BigInt(late.length));
    },
  );

  type Terms = { readonly amount: string; readonly payTo: string };
  function assertPaidAtOldTerms(payment: unknown): void {
    const { amount, payTo } = payment as Terms;
    assert.deepEqual([amount, payTo], ['3000', paid.payTo.toLowerCase()]);
  }

  /** Validly signed by the same payer with the same nonce: of another amount, and of a later end. */
  async function othersOf({ payment }: Sample): Promise<readonly [Payment, Payment]> {
    const smaller = await resigned(payment, (authorization) => Object.assign(authorization, { value: '1' }));
    const later = await resigned(payment, (authorization) =>
      Object.assign(authorization, { validBefore: String(Number(authorization.validBefore) + 60) }),
    );
    const said = altered(smaller, ({ accepted }) => Object.assign(accepted, { amount: '1' }));
    return [said, later];
  }
});
