// One payment buys one call: repeats, and the same authorization in the other version of the protocol, all at once.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment as wrapV2, x402Client } from '@x402/fetch';
import { wrapFetchWithPayment as wrapV1 } from 'x402-fetch';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { logLines, waitFor } from '#test/support/process/service.ts';
import {
  assertDelivered,
  assertSaid,
  EXECUTE,
  each,
  type Sent,
  send,
  sendPatiently,
} from '#test/support/world/paid-call.ts';
import type { Sample } from '#test/support/world/paid-world.ts';
import { SERVED_CHECKS } from '#test/support/world/service-receipts.ts';
import { get, type Report } from '#test/support/world/service-world.ts';
import { paidSuite } from './paid-suite.ts';

const needs = needsAnvil();

describe('one payment, one call', needs, () => {
  const it = paidSuite();

  const settles = ({ payment }: Sample) => it.paid.proxy.callsOf('settle', payment.nonce).length;

  test('a stock client of each version pays and is served', async () => {
    for (const version of [2, 1] as const) {
      const samples = await it.paid.samples(it.service, `stock-${version}`);
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
            const response = await paying(`${it.service.url}${EXECUTE}`, init);
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
        // On a loaded machine the rows may lag by more than a read waits for them.
        const report = await waitFor('its report', async () => {
          const answer = await get<Report>(`${links.verifyJob}`);
          return answer.status !== 503 && answer;
        });
        assert.deepEqual(
          report.body.checks.map(({ name, ok }) => [name, ok]),
          SERVED_CHECKS.map((name) => [name, true]),
        );
      });
      await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
    }
  });

  test('a replay, in either version: the same result, nothing charged, nothing sent', async () => {
    const samples = await it.paid.samples(it.service, 'replay');
    await each(samples, async (sample) => {
      const first = assertDelivered(await sendPatiently(it.service, sample), sample);
      for (const version of [2, 1] as const) {
        const again = await send(it.service, sample, { version });
        const { job, receipt } = assertDelivered(again, sample, { replay: true, version });
        assert.deepEqual([job, receipt], [first.job, { ...first.receipt, replay: true }]);
      }
      assert.equal(settles(sample), 1);
    });
    await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('10 copies of version 2 and 10 of version 1 at once: one call and one settlement; the rest replay, 409 or 429', async () => {
    const samples = await it.paid.samples(it.service, 'copies');
    for (const sample of samples) {
      const versionOf = (n: number) => (n % 2 === 0 ? 2 : 1);
      const sent = await Promise.all(
        Array.from({ length: 20 }, (_, n) => send(it.service, sample, { version: versionOf(n) })),
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
    await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('the service has logged no failure', async () => {
    const { code, stdout, stderr } = await it.service.stop();
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(
      logLines(stdout).filter(({ level }) => level === 'error'),
      [],
    );
  });
});
