// A stock MCP client with a stock x402 client buys calls on the local chain: the unpaid call returns the requirements, and
// each call is paid once, also if it is repeated over MCP or HTTP.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { x402Client } from '@x402/core/client';
import { parsePaymentRequired } from '@x402/core/schemas';
import type { PaymentPayload, PaymentRequired } from '@x402/core/types';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { altered, type Payer } from '#test/support/chain/payer.ts';
import { connectMcp, type McpClient, type ToolResult } from '#test/support/process/mcp-client.ts';
import type { Service } from '#test/support/process/service.ts';
import { assertDelivered, EXECUTE, type Sent, send } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';
import type { Report } from '#test/support/world/service-world.ts';

const needs = needsAnvil();

describe('an MCP client pays', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  let client: McpClient;
  before(async () => {
    paid = await makePaidWorld({
      handler: ({ path }) => ({ status: path.startsWith('/fails') ? 500 : 200 }),
    });
    service = await paid.start({ SCHEDULES: 'on' });
    client = await connectMcp(`${service.url}/mcp`);
  });
  after(async () => {
    await client?.sdk.close();
    await paid.end();
  });

  /** Pays by the requirements of the unpaid call, with the stock client. */
  async function asked(name: string, args: Record<string, unknown>, path: string): Promise<PaymentRequired> {
    const { isError, structured, text, settlement } = await client.call(name, args);
    assert.deepEqual([isError, settlement, structured.x402Version], [true, null, 2]);
    assert.deepEqual(JSON.parse(text), structured);
    const parsed = parsePaymentRequired(structured);
    assert.ok(parsed.success);
    const { resource, accepts } = structured as PaymentRequired;
    assert.equal(resource?.url, `${service.url}${path}`);
    assert.deepEqual(
      accepts.map(({ scheme, network, amount, payTo }) => [scheme, network, amount, payTo]),
      [['exact', 'eip155:8453', '3000', paid.payTo]],
    );
    return structured as PaymentRequired;
  }

  const pay = (signer: Payer, required: PaymentRequired): Promise<PaymentPayload> =>
    registerExactEvmScheme(new x402Client(), { signer }).createPaymentPayload(required);

  /** The result as paid-call.ts judges an HTTP answer. */
  function asSent({ isError, structured, settlement }: ToolResult, status: 200 | 502 = 200): Sent {
    assert.equal(isError, false, JSON.stringify(structured));
    return { status, headers: new Headers(), body: structured as unknown as Sent['body'], paid: settlement };
  }

  async function aSample(row: string, more = {}): Promise<Sample> {
    const [sample] = await paid.samples(service, row, { count: 1, more: () => more });
    return sample ?? assert.fail();
  }

  test('one payment, one call: repeats over MCP and over HTTP replay, nothing is sent or charged again', async () => {
    const sample = await aSample('once');
    const payment = await pay(sample.payer, await asked('execute_webhook', sample.request, EXECUTE));
    await paid.assertBooks([sample], { calls: 0, charges: 0 });
    const bought = await client.call('execute_webhook', sample.request, payment);
    const first = assertDelivered(asSent(bought), sample);
    await paid.assertBooks([sample], { calls: 1, charges: 1 });
    const again = await client.call('execute_webhook', sample.request, payment);
    assert.deepEqual(assertDelivered(asSent(again), sample, { replay: true }).job, first.job);
    // The same authorization in the headers of both versions over HTTP, and as version 1 over MCP.
    const shown = altered(sample.payment, (of) => Object.assign(of, payment));
    for (const version of [2, 1] as const) {
      const overHttp = await send(service, sample, { version, payment: shown });
      assert.deepEqual(assertDelivered(overHttp, sample, { replay: true, version }).job, first.job);
    }
    const old = { x402Version: 1, scheme: 'exact', network: 'base', payload: payment.payload };
    const asOld = await client.call('execute_webhook', sample.request, old);
    assert.deepEqual(assertDelivered(asSent(asOld), sample, { replay: true, version: 1 }).job, first.job);
    const report = (await client.call('verify_receipt', { id: first.receipt.id })).structured as Report;
    assert.deepEqual([report.ok, report.signatureVerified, report.jobId], [true, true, first.job.id]);
    await paid.assertBooks([sample], { calls: 1, charges: 1 });
  });

  test('a stateless client pays as Cloudflare does: the terms of _meta, the payment as the text of the header', async () => {
    const sample = await aSample('cloudflare');
    const stateless = await connectMcp(`${service.url}/mcp`, undefined, '2.x stateless');
    const unpaid = await stateless.call('execute_webhook', sample.request);
    const terms = unpaid.error ?? assert.fail(unpaid.text);
    const payment = await pay(sample.payer, terms);
    const header = btoa(JSON.stringify(payment));
    for (const replay of [false, true]) {
      const bought = await stateless.call('execute_webhook', sample.request, header);
      assertDelivered(asSent(bought), sample, { replay });
    }
    const asObject = await client.call('execute_webhook', sample.request, payment);
    assertDelivered(asSent(asObject), sample, { replay: true });
    await stateless.sdk.close();
    await paid.assertBooks([sample], { calls: 1, charges: 1 });
  });
});
