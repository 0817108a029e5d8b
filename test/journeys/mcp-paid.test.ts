// A stock MCP client with a stock x402 client buys calls on the local chain: the unpaid call returns the requirements, and
// each call is paid once, also if it is repeated over MCP or HTTP.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { x402Client } from '@x402/core/client';
import { parsePaymentRequired } from '@x402/core/schemas';
import type { PaymentPayload, PaymentRequired } from '@x402/core/types';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { needsAnvil } from '#test/support/local-payments.ts';
import { connectMcp, type McpClient, type ToolResult } from '#test/support/mcp-client.ts';
import { assertDelivered, EXECUTE, type Sent, send } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { altered, newPayer, type Payer } from '#test/support/payer.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import type { Report } from '#test/support/service-world.ts';

const needs = needsAnvil();

/** An hour later. */
const later = (at: string) => new Date(Date.parse(at) + 3_600_000).toISOString();

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

  test('bought over HTTP first: the same payment over MCP replays it; for another request it is refused', async () => {
    const sample = await aSample('http-first');
    const first = assertDelivered(await send(service, sample), sample);
    const { payload } = sample.payment;
    const again = await client.call('execute_webhook', sample.request, payload);
    assert.deepEqual(assertDelivered(asSent(again), sample, { replay: true }).job, first.job);
    const other = await client.call('execute_webhook', { ...sample.request, body: 'other' }, payload);
    assert.deepEqual([other.isError, other.settlement], [true, null]);
    assert.match(other.text, /^payment_reused: /);
    await paid.assertBooks([sample], { calls: 1, charges: 1 });
  });

  test('settled, and the answer lost: the error asks for the same payment again, which is then served', async () => {
    const sample = await aSample('lost');
    const { payload } = sample.payment;
    paid.proxy.rule(({ kind, nth }) => (kind === 'settle' && nth === 1 ? 'cut' : 'pass'));
    paid.node.blind(true);
    const { isError, structured, text, settlement } = await client.call(
      'execute_webhook',
      sample.request,
      payload,
    );
    paid.proxy.rule(() => 'pass');
    paid.node.blind(false);
    assert.deepEqual([isError, settlement, 'accepts' in structured], [true, null, false]);
    assert.match(text, /^payment_unconfirmed: .*Try again in \d+ seconds\..*same _meta\["x402\/payment"\]/s);
    assert.ok(Number(structured.retryAfterSeconds) > 0);
    await paid.assertBooks([sample], { calls: 0, charges: 1 });
    for (const replay of [false, true]) {
      const result = await client.call('execute_webhook', sample.request, payload);
      assertDelivered(asSent(result), sample, { replay });
    }
    await paid.assertBooks([sample], { calls: 1, charges: 1 });
  });

  test('runs of a schedule: each is bought once, and charged when it is due', async () => {
    const [payer, path] = [newPayer(), '/mcp-scheduled'];
    await paid.chain.mint([payer.address], 6000n);
    const startAt = new Date(Date.now() + 25_000).toISOString();
    const order = {
      webhook: { url: paid.target.url(path), body: { by: 'mcp' } },
      schedule: { type: 'interval', everyMinutes: 60, startAt },
    };
    const first = await pay(payer, await asked('create_schedule', order, '/api/schedules/webhook'));
    const bought = (await client.call('create_schedule', order, first)).structured;
    const { scheduleId: id, cancelToken } = bought;
    assert.deepEqual([bought.fundedRuns, typeof cancelToken], [1, 'string'], JSON.stringify(bought));
    const again = (await client.call('create_schedule', order, first)).structured;
    assert.deepEqual([again.scheduleId, again.fundedRuns], [id, 1]);
    const second = await pay(payer, await asked('fund_schedule_run', { id }, `/api/schedules/${id}/runs`));
    for (let times = 0; times < 2; times++) {
      const { isError, structured } = await client.call('fund_schedule_run', { id }, second);
      assert.deepEqual([isError, structured.run], [false, { n: 2, dueAt: later(startAt) }]);
    }
    const other = await client.call('create_schedule', { ...order, catchUpSeconds: 1 }, first);
    assert.match(other.text, /^payment_reused: /);
    assert.equal(await paid.chain.balanceOf(payer.address), 6000n);
    const runs = await waitFor('run 1', async () => {
      const { structured } = await client.call('get_schedule', { id });
      const shown = structured.runs as readonly { readonly n: number; readonly state: string }[];
      return shown.find(({ n }) => n === 1)?.state === 'executed' && shown;
    });
    assert.equal(runs.find(({ n }) => n === 2)?.state, 'funded');
    assert.equal(paid.target.requests.filter((request) => request.path === path).length, 1);
    assert.equal(await paid.chain.balanceOf(payer.address), 3000n);
  });
});
