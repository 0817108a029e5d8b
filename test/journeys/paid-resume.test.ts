// A paid call is executed, also if the circumstances have changed since it was accepted; a failing target is a paid attempt.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
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
import { paidSuite } from '#test/support/paid-suite.ts';
import type { Sample } from '#test/support/paid-world.ts';
import { challenge, makePayment, newPayer, type Payment } from '#test/support/payer.ts';

const needs = needsAnvil();
const NEW_PRICE = '5000';

describe('paid, then the circumstances changed', needs, () => {
  const it = paidSuite();

  const payee = newPayer().address;
  const moved = ({ nonce }: Payment) =>
    it.paid.proxy.callsOf('settle', nonce).filter((call) => call.moved).length;

  /** Accepted, its settlement unknown, nothing charged yet. */
  async function leaveUnknown(sample: Sample): Promise<void> {
    it.paid.proxy.rule(({ kind, nth }) => (kind === 'settle' && nth === 1 ? 'json_500' : 'pass'));
    assertSaid(await sendPatiently(it.service, sample), 503, 'payment_unconfirmed');
  }

  const oneMore = async ({ payer }: Sample) =>
    makePayment(payer, await challenge(`${it.service.url}${EXECUTE}`));

  test('the target’s name does not resolve any more: a failure with a receipt, charged once', async () => {
    const host = 'gone.target.test';
    const more = (n: number) => ({ url: it.paid.target.url(`/gone/${n}`, host) });
    const samples = await it.paid.samples(it.service, 'gone', { more });
    await each(samples, (sample) => leaveUnknown(sample));
    it.paid.dns.set(host, { rcode: 'NXDOMAIN' });
    await each(samples, async (sample) => {
      const payment = await oneMore(sample);
      assertSaid(await sendPatiently(it.service, sample, { payment }), 400, 'target_unresolvable');
      const failed = assertDelivered(await sendPatiently(it.service, sample), sample, { status: 502 });
      assert.deepEqual([failed.job.errorCategory, failed.job.attempts], ['dns_error', 1]);
    });
    await it.paid.assertBooks(samples, { calls: 0, charges: 1 });
  });

  const hang = () => new Promise<undefined>(() => undefined);
  for (const [row, category, answer] of [
    ['status-500', 'target_server_error', () => ({ status: 500 })],
    ['hang', 'timeout', hang],
  ] as const) {
    test(`target ${row}: 502 with the payment header, charged once; a replay gives the same 502`, async () => {
      const timeoutMs = answer === hang ? 1000 : 10_000;
      it.paid.target.answer(answer);
      it.paid.proxy.rule(() => 'pass');
      const samples = await it.paid.samples(it.service, row, { more: () => ({ timeoutMs }) });
      await each(samples, async (sample) => {
        const failed = assertDelivered(await sendPatiently(it.service, sample), sample, { status: 502 });
        assert.equal(failed.job.errorCategory, category);
        for (const version of [2, 1] as const) {
          const again = await send(it.service, sample, { version });
          const replayed = assertDelivered(again, sample, { status: 502, replay: true, version });
          assert.deepEqual([replayed.job, replayed.receipt.jws], [failed.job, failed.receipt.jws]);
        }
        assert.equal(it.paid.proxy.callsOf('settle', sample.payment.nonce).length, 1);
      });
      await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }

  // Last: the service is started again.
  test('price and payee change: charged calls are served, served ones replay, and only new payments have the new terms', async () => {
    it.paid.target.answer(() => ({}));
    const lost = await it.paid.samples(it.service, 'lost');
    const unsettled = await it.paid.samples(it.service, 'unsettled');
    const done = await it.paid.samples(it.service, 'done');
    const late = await it.paid.samples(it.service, 'late');
    const present = (sample: Sample) => sendPatiently(it.service, sample);
    await it.paid.leaveUnknown(lost, 'cut', present);
    await it.paid.assertBooks(lost, { calls: 0, charges: 1 });
    await it.paid.leaveUnknown(unsettled, 'json_500', present);
    await it.paid.assertBooks(unsettled, { calls: 0, charges: 0 });
    it.paid.proxy.rule(() => 'pass');
    const served = await each(done, async (sample) =>
      assertDelivered(await sendPatiently(it.service, sample), sample),
    );
    await it.paid.assertBooks(done, { calls: 1, charges: 1 });

    await it.service.stop();
    it.service = await it.paid.start({ X402_PRICE: '$0.005', X402_PAY_TO: payee });
    const asked = await challenge(`${it.service.url}${EXECUTE}`);
    const [terms] = asked.accepts;
    assert.deepEqual([terms?.amount, terms?.payTo], [NEW_PRICE, payee]);

    // What the answers say of amount and payee is compared with the receipt by assertDelivered.
    await each(lost, async (sample) => {
      const { payment } = assertDelivered(await sendPatiently(it.service, sample), sample);
      assertPaidAtOldTerms(payment);
      assert.equal(moved(sample.payment), 1);
    });
    await each(unsettled, async (sample) => {
      assertPaidAtOldTerms(assertDelivered(await sendPatiently(it.service, sample), sample).payment);
    });
    await each(done, async (sample, n) => {
      for (const version of [2, 1] as const) {
        const again = assertDelivered(await sendPatiently(it.service, sample, { version }), sample, {
          replay: true,
          version,
        });
        assert.deepEqual([again.job.id, again.payment], [served[n]?.job.id, served[n]?.payment]);
      }
    });
    await each(late, async (sample) => {
      for (const version of [2, 1] as const) {
        const reason = assertAskedToPay(await sendPatiently(it.service, sample, { version }));
        assert.match(reason, /recipient_mismatch|amount_mismatch/);
      }
      assert.deepEqual(
        [
          ...it.paid.proxy.callsOf('verify', sample.payment.nonce),
          ...it.paid.proxy.callsOf('settle', sample.payment.nonce),
        ],
        [],
      );
    });
    for (const samples of [unsettled, lost, done]) {
      await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
    }
    await it.paid.assertBooks(late, { calls: 0, charges: 0 });
    assert.equal(await it.paid.chain.balanceOf(payee), 0n, 'nothing of before went to the new payee');

    await each(late, async (sample) => {
      const payment = await makePayment(sample.payer, asked);
      const sent = await sendPatiently(it.service, sample, { payment });
      assert.equal(sent.status, 200, JSON.stringify(sent.body));
      const { amount, payTo } = sent.body.payment as Terms;
      assert.deepEqual([amount, payTo], [NEW_PRICE, payee.toLowerCase()]);
    });
    assert.equal(await it.paid.chain.balanceOf(payee), BigInt(NEW_PRICE) * BigInt(late.length));
  });

  type Terms = { readonly amount: string; readonly payTo: string };
  function assertPaidAtOldTerms(payment: unknown): void {
    const { amount, payTo } = payment as Terms;
    assert.deepEqual([amount, payTo], ['3000', it.paid.payTo.toLowerCase()]);
  }
});
