// Stock clients sign a new authorization on every repeat. After a settlement of unknown fate such a repeat, with the same
// idempotency key, gets the call that was paid for first; or, if the first payment can never be paid, the call it pays for
// itself; or a 409 that says what is known. No call is made twice and no payer is charged twice.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parsePaymentRequired } from '@x402/core/schemas';
import type { PaymentRequired } from '@x402/core/types';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import type { Fault } from '#test/support/fault-proxy.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { connectMcp, type McpClient } from '#test/support/mcp-client.ts';
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
import { cancellation, challenge, makePayment } from '#test/support/payer.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { LONG } from '#test/support/property-runs.ts';
import type { Service } from '#test/support/service.ts';
import { stockClient } from '#test/support/stock-client.ts';

const anvil = needsAnvil();
const postgres = needsPostgres();
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

describe('a client that signs on every repeat', () => {
  let paid: PaidWorld;
  let service: Service;
  before(async () => {
    if (anvil.skip) return;
    paid = await makePaidWorld();
    service = await paid.start();
  });
  after(() => paid?.end());

  for (const version of VERSIONS) {
    test(
      `paid, version ${version}: the repeat gets the first payment’s call; the new authorization is not touched`,
      anvil,
      async () => {
        const samples = await paid.samples(service, `paid-${version}`, { more: keyed });
        const clients = new Map(samples.map((sample) => [sample, stockClient(version, sample)]));
        const clientOf = (sample: Sample) => clients.get(sample) ?? assert.fail();
        await paid.leaveUnknown(samples, 'cut', (sample) => clientOf(sample).call(service));
        await each(samples, async (sample) => {
          const client = clientOf(sample);
          const first = assertDelivered(await client.call(service), sample, { version });
          const again = assertDelivered(await client.call(service), sample, { version, replay: true });
          assert.deepEqual([again.job, again.payment], [first.job, first.payment]);
          const [original, ...later] = client.nonces;
          assert.equal(new Set(client.nonces).size, 3, 'each repeat is signed again');
          assert.deepEqual(asked(paid, original), [1, 1]);
          for (const nonce of later) assert.deepEqual(asked(paid, nonce), [0, 0]);
        });
        await paid.assertBooks(samples, { calls: 1, charges: 1 });
      },
    );

    test(
      `cancelled on chain, version ${version}: the key is released and the new payment buys the call`,
      anvil,
      async () => {
        const samples = await paid.samples(service, `cancelled-${version}`, { more: keyed });
        failFirstSettle(paid, 'http_500');
        await each(samples, async (sample) => {
          assertSaid(await sendPatiently(service, sample, { version }), 503, 'payment_unconfirmed');
          const { payer, nonce } = sample.payment;
          await paid.chain.cancel(payer.address, nonce, await cancellation(sample.payment));
        });
        paid.proxy.rule(() => 'pass');
        await each(samples, async (sample) => {
          const client = stockClient(version, sample);
          assertDelivered(await client.call(service), sample, { version });
          assert.deepEqual(asked(paid, client.nonces[0]), [1, 1]);
        });
        await paid.assertBooks(samples, { calls: 1, charges: 1 });
      },
    );
  }

  test('over MCP: the second payment’s result is the first payment’s call', anvil, () =>
    assertOverMcp(paid, [service, service]),
  );

  test(
    '20 repeats at once, each with an authorization of its own: one call, charged once',
    anvil,
    async () => {
      const samples = await paid.samples(service, 'at-once', { count: 3, more: keyed });
      await paid.leaveUnknown(samples, 'cut', (sample) => sendPatiently(service, sample));
      for (const sample of samples) {
        const offer = await challenge(`${service.url}${EXECUTE}`);
        const payments = await Promise.all(
          Array.from({ length: 20 }, () => makePayment(sample.payer, offer)),
        );
        const sent = await Promise.all(payments.map((payment) => send(service, sample, { payment })));
        assert.equal(sent.filter(({ status, body }) => status === 200 && !body.idempotentReplay).length, 1);
        for (const answer of sent) {
          if (answer.status === 200) {
            assertDelivered(answer, sample, { replay: answer.body.idempotentReplay });
          } else if (answer.status === 409) assertSaid(answer, 409, 'idempotency_in_progress');
          else assertSaid(answer, 429, 'too_many_in_flight');
        }
        for (const { nonce } of payments) assert.deepEqual(asked(paid, nonce), [0, 0]);
      }
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    },
  );

  for (const [title, fault, charges] of [
    ['settled', 'cut', 1],
    ['not settled', 'http_500', 0],
  ] as const) {
    test(
      `${title}, and the node does not answer: an honest 409, nothing charged for the repeat; the first header still gets its call`,
      anvil,
      async () => {
        const samples = await paid.samples(service, fault, { more: keyed });
        await paid.leaveUnknown(samples, fault, (sample) => sendPatiently(service, sample));
        paid.node.blind(true);
        await each(samples, async (sample) => {
          for (const version of VERSIONS) {
            const client = stockClient(version, sample);
            assertUnconfirmed(await client.call(service), /^1\d\d$/);
            assert.deepEqual(asked(paid, client.nonces[0]), [0, 0]);
          }
        });
        paid.node.blind(false);
        await paid.assertBooks(samples, { calls: 0, charges });
        await each(samples, async (sample) => {
          assertDelivered(await sendPatiently(service, sample), sample);
          assertDelivered(await stockClient(2, sample).call(service), sample, { replay: true });
        });
        await paid.assertBooks(samples, { calls: 1, charges: 1 });
      },
    );
  }

  // Last: it moves the chain's time.
  test(
    'not settled: 409 until the chain proves it unused past its end, then the new payment buys the call',
    anvil,
    async () => {
      const terms = { maxTimeoutSeconds: 20 };
      const samples = await paid.samples(service, 'expired', { more: keyed, terms });
      failFirstSettle(paid, 'http_500');
      await each(samples, async (sample) => {
        assertSaid(await sendPatiently(service, sample), 503, 'payment_unconfirmed');
        const client = stockClient(2, sample);
        assertUnconfirmed(await client.call(service), /^\d\d?$/);
        assert.deepEqual(asked(paid, client.nonces[0]), [0, 0]);
      });
      await paid.assertBooks(samples, { calls: 0, charges: 0 });
      await paid.chain.advance(90);
      paid.proxy.rule(() => 'pass');
      await each(samples, async (sample) => {
        assertDelivered(await stockClient(2, sample).call(service), sample);
        // The first authorization can never be settled any more: its header is answered by the key.
        assertDelivered(await send(service, sample), sample, { replay: true });
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    },
  );
});

if (LONG)
  describe('a client that signs on every repeat, on two processes', () => {
    const needs = { skip: anvil.skip || postgres.skip };
    let server: PostgresServer;
    let paid: PaidWorld;
    let pair: readonly [Service, Service];
    before(async () => {
      if (needs.skip) return;
      server = await postgresServer();
      paid = await makePaidWorld();
      const DATABASE_URL = await server.newDatabase();
      // One after the other: the first makes the key file.
      const left = await paid.start({ DATABASE_URL });
      pair = [left, await paid.start({ DATABASE_URL })];
    });
    after(async () => {
      await paid?.end();
      await server?.remove();
    });

    for (const version of VERSIONS) {
      test(
        `paid at one, version ${version}: the repeat at the other gets the first payment’s call`,
        needs,
        async () => {
          const samples = await paid.samples(pair[0], `paid-${version}`, { more: keyed });
          const clients = new Map(samples.map((sample) => [sample, stockClient(version, sample)]));
          const clientOf = (sample: Sample) => clients.get(sample) ?? assert.fail();
          const sides = (n: number) => (n % 2 === 0 ? pair : ([pair[1], pair[0]] as const));
          await paid.leaveUnknown(samples, 'cut', (sample, n) => clientOf(sample).call(sides(n)[0]));
          await each(samples, async (sample, n) => {
            const [here, there] = sides(n);
            const client = clientOf(sample);
            assertDelivered(await client.call(there), sample, { version });
            assertDelivered(await client.call(here), sample, { version, replay: true });
            for (const nonce of client.nonces.slice(1)) assert.deepEqual(asked(paid, nonce), [0, 0]);
          });
          await paid.assertBooks(samples, { calls: 1, charges: 1 });
        },
      );
    }

    test('over MCP: paid at one, the repeat at the other gets the first payment’s call', needs, () =>
      assertOverMcp(paid, pair),
    );

    test(
      'not settled at one: the other answers 409; after a cancellation the new payment buys the call',
      needs,
      async () => {
        const samples = await paid.samples(pair[0], 'not-settled', { more: keyed });
        failFirstSettle(paid, 'http_500');
        await each(samples, async (sample, n) => {
          const [here, there] = n % 2 === 0 ? pair : [pair[1], pair[0]];
          assertSaid(await sendPatiently(here, sample), 503, 'payment_unconfirmed');
          const client = stockClient(2, sample);
          assertUnconfirmed(await client.call(there), /^1\d\d$/);
          assert.deepEqual(asked(paid, client.nonces[0]), [0, 0]);
        });
        await paid.assertBooks(samples, { calls: 0, charges: 0 });
        paid.proxy.rule(() => 'pass');
        await each(samples, async (sample, n) => {
          const { payer, nonce } = sample.payment;
          await paid.chain.cancel(payer.address, nonce, await cancellation(sample.payment));
          assertDelivered(await stockClient(2, sample).call(pair[n % 2 === 0 ? 1 : 0]), sample);
        });
        await paid.assertBooks(samples, { calls: 1, charges: 1 });
      },
    );
  });

/** An MCP client that pays each call with a new authorization: first at one process, then at the other. */
async function assertOverMcp(paid: PaidWorld, pair: readonly [Service, Service]): Promise<void> {
  const samples = await paid.samples(pair[0], 'mcp', { more: keyed });
  failFirstSettle(paid, 'cut');
  const [here, there] = await Promise.all(pair.map(({ url }) => connectMcp(`${url}/mcp`)));
  assert.ok(here && there);
  const call = async (mcp: McpClient, sample: Sample) => {
    const { structured } = await mcp.call('execute_webhook', sample.request);
    const required = parsePaymentRequired(structured);
    assert.ok(required.success);
    const client = registerExactEvmScheme(new x402Client(), { signer: sample.payer });
    const payment = await client.createPaymentPayload(structured as PaymentRequired);
    return mcp.call('execute_webhook', sample.request, payment);
  };
  paid.node.blind(true);
  await each(samples, async (sample) => {
    const lost = await call(here, sample);
    assert.equal(lost.isError, true);
    assert.match(lost.text, /^payment_unconfirmed/);
  });
  paid.node.blind(false);
  await each(samples, async (sample) => {
    const { isError, structured, settlement } = await call(there, sample);
    assert.equal(isError, false, JSON.stringify(structured));
    const body = structured as unknown as Sent['body'];
    assertDelivered({ status: 200, headers: new Headers(), body, paid: settlement }, sample);
  });
  await Promise.all([here.sdk.close(), there.sdk.close()]);
  await paid.assertBooks(samples, { calls: 1, charges: 1 });
}
