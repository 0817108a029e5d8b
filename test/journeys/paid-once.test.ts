// One payment buys one call: repeats, the same authorization in the other version of the protocol, all at once, with
// another body, with another key.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment as wrapV2, x402Client } from '@x402/fetch';
import { wrapFetchWithPayment as wrapV1 } from 'x402-fetch';
import { needsAnvil } from '#test/support/local-payments.ts';
import {
  assertDelivered,
  assertSaid,
  EXECUTE,
  each,
  type Sent,
  send,
  sendPatiently,
} from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { challenge, makePayment } from '#test/support/payer.ts';
import { logLines, type Service } from '#test/support/service.ts';
import { SERVED_CHECKS } from '#test/support/service-receipts.ts';
import { get, type Report } from '#test/support/service-world.ts';

const needs = needsAnvil();

describe('one payment, one call', () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld();
    service = await paid.start();
  });
  after(() => paid?.end());

  const settles = ({ payment }: Sample) => paid.proxy.callsOf('settle', payment.nonce).length;

  test('a stock client of each version pays and is served', needs, async () => {
    for (const version of [2, 1] as const) {
      const samples = await paid.samples(service, `stock-${version}`);
      await each(samples, async (sample) => {
        const { payer, request } = sample;
        const client = registerExactEvmScheme(new x402Client(), { signer: payer });
        const paying =
          version === 2 ? wrapV2(fetch, client) : wrapV1(fetch as typeof globalThis.fetch, payer);
        const init = {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(request),
        };
        const call = async () => {
          for (;;) {
            const response = await paying(`${service.url}${EXECUTE}`, init);
            if (response.status !== 429) return response;
            await response.body?.cancel();
          }
        };
        const { status, headers, ...response } = await call().then(async (answered) => ({
          status: answered.status,
          headers: answered.headers,
          body: await answered.json(),
        }));
        const settlement = headers.get(version === 2 ? 'payment-response' : 'x-payment-response');
        assert.ok(settlement);
        const sent = {
          status,
          headers,
          ...response,
          paid: JSON.parse(Buffer.from(settlement, 'base64').toString()),
        };
        const { links } = assertDelivered(sent as Sent, sample, { version });
        const report = await get<Report>(`${links.verifyJob}`);
        assert.deepEqual(
          report.body.checks.map(({ name, ok }) => [name, ok]),
          SERVED_CHECKS.map((name) => [name, true]),
        );
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    }
  });

  test('a replay, in either version: the same result, nothing charged, nothing sent', needs, async () => {
    const samples = await paid.samples(service, 'replay');
    await each(samples, async (sample) => {
      const first = assertDelivered(await sendPatiently(service, sample), sample);
      for (const version of [2, 1] as const) {
        const again = await send(service, sample, { version });
        const { job, receipt } = assertDelivered(again, sample, { replay: true, version });
        assert.deepEqual([job, receipt], [first.job, { ...first.receipt, replay: true }]);
      }
      assert.equal(settles(sample), 1);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('paid as version 1 first, then shown as version 2: a replay', needs, async () => {
    const samples = await paid.samples(service, 'v1-first');
    await each(samples, async (sample) => {
      const { job } = assertDelivered(await sendPatiently(service, sample, { version: 1 }), sample, {
        version: 1,
      });
      const again = assertDelivered(await send(service, sample), sample, { replay: true });
      assert.deepEqual(again.job, job);
      assert.equal(settles(sample), 1);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  for (const [title, versions] of [
    ['20 copies at once', [2]],
    ['10 copies of version 2 and 10 of version 1 at once', [2, 1]],
  ] as const) {
    test(`${title}: one call and one settlement; the rest replay, 409 or 429`, needs, async () => {
      const samples = await paid.samples(service, `copies-${versions.length}`);
      for (const sample of samples) {
        const versionOf = (n: number) => versions[n % versions.length] ?? 2;
        const sent = await Promise.all(
          Array.from({ length: 20 }, (_, n) => send(service, sample, { version: versionOf(n) })),
        );
        const served = sent.filter(({ status }) => status === 200);
        assert.equal(served.filter(({ body }) => !body.idempotentReplay).length, 1);
        assert.equal(new Set(served.map(({ body }) => body.receipt.id)).size, 1);
        for (const [n, answer] of sent.entries()) {
          const version = versionOf(n);
          if (answer.status === 200) {
            assertDelivered(answer, sample, { version, replay: answer.body.idempotentReplay });
          } else if (answer.status === 409) assertSaid(answer, 409, 'idempotency_in_progress');
          else assertSaid(answer, 429, 'too_many_in_flight');
        }
        assert.equal(settles(sample), 1);
      }
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }

  test(
    'another body, and another idempotencyKey, with the same payment: 409, and the first result is unchanged',
    needs,
    async () => {
      const samples = await paid.samples(service, 'reused', {
        more: (n) => ({ idempotencyKey: `first ${n}` }),
      });
      await each(samples, async (sample) => {
        const first = assertDelivered(await sendPatiently(service, sample), sample);
        for (const change of [{ body: 'another' }, { idempotencyKey: 'another' }, { method: 'PUT' }]) {
          const request = { ...sample.request, ...change };
          assertSaid(await send(service, sample, { request }), 409, 'payment_reused');
          assertSaid(await send(service, sample, { request, version: 1 }), 409, 'payment_reused');
        }
        const again = assertDelivered(await send(service, sample), sample, { replay: true });
        assert.deepEqual(again.job, first.job);
        assert.equal(settles(sample), 1);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    },
  );

  test(
    'one payment with K1, then K2, then a new payment with K2: K2 buys a call of its own',
    needs,
    async () => {
      const asked = await challenge(`${service.url}${EXECUTE}`);
      const samples = await paid.samples(service, 'two-keys', { more: () => ({ idempotencyKey: 'K1' }) });
      await each(samples, async (sample) => {
        const second = { ...sample.request, idempotencyKey: 'K2' };
        const first = assertDelivered(await sendPatiently(service, sample), sample);
        assertSaid(await send(service, sample, { request: second }), 409, 'payment_reused');
        const payment = await makePayment(sample.payer, asked);
        const last = assertDelivered(
          await sendPatiently(service, sample, { request: second, payment }),
          sample,
        );
        assert.notEqual(last.job.id, first.job.id);
        const again = await send(service, sample, { request: second, payment });
        assert.equal(assertDelivered(again, sample, { replay: true }).job.id, last.job.id);
      });
      await paid.assertBooks(samples, { calls: 2, charges: 2 });
    },
  );

  test('the same key with a new payment: the first result is replayed, and not charged', needs, async () => {
    const asked = await challenge(`${service.url}${EXECUTE}`);
    const samples = await paid.samples(service, 'key-again', { more: () => ({ idempotencyKey: 'K' }) });
    await each(samples, async (sample) => {
      const first = assertDelivered(await sendPatiently(service, sample), sample);
      const payment = await makePayment(sample.payer, asked);
      const again = assertDelivered(await send(service, sample, { payment }), sample, { replay: true });
      assert.deepEqual(again.job, first.job);
      assert.equal(paid.proxy.callsOf('settle', payment.nonce).length, 0);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('the service has logged no failure', needs, async () => {
    const { code, stdout, stderr } = await service.stop();
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(
      logLines(stdout).filter(({ level }) => level === 'error'),
      [],
    );
  });
});
