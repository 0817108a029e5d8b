// Stock clients sign a new authorization on every repeat. After a settlement of unknown fate such a repeat, with the same
// idempotency key, gets the call that was paid for first; or, if the first payment can never be paid, the call it pays for
// itself; or a 409 that says what is known. No call is made twice and no payer is charged twice.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parsePaymentRequired } from '@x402/core/schemas';
import type { PaymentRequired } from '@x402/core/types';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import type { Fault } from '#test/support/fault-proxy.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { connectMcp } from '#test/support/mcp-client.ts';
import {
  assertDelivered,
  assertSaid,
  each,
  type Sent,
  send,
  sendPatiently,
} from '#test/support/paid-call.ts';
import { paidSuite } from '#test/support/paid-suite.ts';
import type { PaidWorld, Sample } from '#test/support/paid-world.ts';
import { stockClient } from '#test/support/stock-client.ts';

const anvil = needsAnvil();
const VERSIONS = [2, 1] as const;

const keyed = (n: number) => ({ idempotencyKey: `key ${n}` });

/** The first settle call of each of these payers fails so; every other call passes. */
function failFirstSettle({ proxy }: PaidWorld, fault: Fault): void {
  proxy.rule(({ kind, nth }) => (kind === 'settle' && nth === 1 ? fault : 'pass'));
}

function assertUnconfirmed(sent: Sent, retryAfter: RegExp): void {
  assertSaid(sent, 409, 'idempotency_in_progress');
  const { message, details } = sent.body.error;
  assert.match(message, /payment of the first call.* is unconfirmed/);
  assert.deepEqual(details, { paymentState: 'unconfirmed' });
  assert.match(sent.headers.get('retry-after') ?? '', retryAfter);
}

/** How often an authorization was verified and settled. */
const asked = ({ proxy }: PaidWorld, nonce: string | undefined) =>
  (['verify', 'settle'] as const).map((kind) => proxy.callsOf(kind, nonce ?? '').length);

describe('a client that signs on every repeat', anvil, () => {
  const it = paidSuite();

  for (const version of VERSIONS) {
    test(`paid, version ${version}: the repeat gets the first payment’s call; the new authorization is not touched`, async () => {
      const samples = await it.paid.samples(it.service, `paid-${version}`, { more: keyed });
      const clients = new Map(samples.map((sample) => [sample, stockClient(version, sample)]));
      const clientOf = (sample: Sample) => clients.get(sample) ?? assert.fail();
      await it.paid.leaveUnknown(samples, 'cut', (sample) => clientOf(sample).call(it.service));
      await each(samples, async (sample) => {
        const client = clientOf(sample);
        const first = assertDelivered(await client.call(it.service), sample, { version });
        const again = assertDelivered(await client.call(it.service), sample, { version, replay: true });
        assert.deepEqual([again.job, again.payment], [first.job, first.payment]);
        const [original, ...later] = client.nonces;
        assert.equal(new Set(client.nonces).size, 3, 'each repeat is signed again');
        assert.deepEqual(asked(it.paid, original), [1, 1]);
        for (const nonce of later) assert.deepEqual(asked(it.paid, nonce), [0, 0]);
      });
      await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }

  // It signs each call again.
  test('over MCP: the second payment’s result is the first payment’s call', async () => {
    const samples = await it.paid.samples(it.service, 'mcp', { more: keyed });
    failFirstSettle(it.paid, 'cut');
    const mcp = await connectMcp(`${it.service.url}/mcp`);
    const call = async (sample: Sample) => {
      const { structured } = await mcp.call('execute_webhook', sample.request);
      const required = parsePaymentRequired(structured);
      assert.ok(required.success);
      const client = registerExactEvmScheme(new x402Client(), { signer: sample.payer });
      const payment = await client.createPaymentPayload(structured as PaymentRequired);
      return mcp.call('execute_webhook', sample.request, payment);
    };
    it.paid.node.blind(true);
    await each(samples, async (sample) => {
      const lost = await call(sample);
      assert.equal(lost.isError, true);
      assert.match(lost.text, /^payment_unconfirmed/);
    });
    it.paid.node.blind(false);
    await each(samples, async (sample) => {
      const { isError, structured, settlement } = await call(sample);
      assert.equal(isError, false, JSON.stringify(structured));
      const body = structured as unknown as Sent['body'];
      assertDelivered({ status: 200, headers: new Headers(), body, paid: settlement }, sample);
    });
    await mcp.sdk.close();
    await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  // Last: it moves the chain's time.
  test('not settled: 409 until the chain proves it unused past its end, then the new payment buys the call', async () => {
    const terms = { maxTimeoutSeconds: 20 };
    const samples = await it.paid.samples(it.service, 'expired', { more: keyed, terms });
    failFirstSettle(it.paid, 'http_500');
    await each(samples, async (sample) => {
      assertSaid(await sendPatiently(it.service, sample), 503, 'payment_unconfirmed');
      const client = stockClient(2, sample);
      assertUnconfirmed(await client.call(it.service), /^\d\d?$/);
      assert.deepEqual(asked(it.paid, client.nonces[0]), [0, 0]);
    });
    await it.paid.assertBooks(samples, { calls: 0, charges: 0 });
    await it.paid.chain.advance(90);
    it.paid.proxy.rule(() => 'pass');
    await each(samples, async (sample) => {
      assertDelivered(await stockClient(2, sample).call(it.service), sample);
      // The first authorization can never be settled any more: its header is answered by the key.
      assertDelivered(await send(it.service, sample), sample, { replay: true });
    });
    await it.paid.assertBooks(samples, { calls: 1, charges: 1 });
  });
});
