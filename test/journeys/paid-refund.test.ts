// Refunds on a real chain, by the real commands: payments are taken out of use, the money is sent to several payers in one
// transaction, and each transfer refunds no more than it moved. What the chain shows is the measure at every step.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Hex } from 'viem';
import { operatorChain } from '#src/app/chain.ts';
import { openOperatorLog } from '#src/app/operator.ts';
import { EXIT } from '#src/cli/exit.ts';
import { completeRefunds } from '#src/usecases/payments/complete-refund.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { challenge, makePayment, newPayer } from '#test/support/chain/payer.ts';
import { placeToken, sendBatch } from '#test/support/chain/refund-batch.ts';
import { runCli } from '#test/support/process/cli.ts';
import type { Service } from '#test/support/process/service.ts';
import { assertDelivered, assertSaid, EXECUTE, send, sendPatiently } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';
import { LATER, leaveSettled, type Operator, operator, resolveAll } from './refund-operator.ts';

const needs = needsAnvil();
const PURSE = 30_000n;
const UNKNOWN_TX = `0x${'7'.repeat(64)}`;

/** A payer with two payments, and others with one each. */
async function manySamples(paid: PaidWorld, service: Service, row: string, count: number): Promise<Sample[]> {
  const samples = await paid.samples(service, row, { count });
  const [first] = samples;
  assert.ok(first);
  const path = `/${row}/again`;
  const payment = await makePayment(first.payer, await challenge(`${service.url}${EXECUTE}`));
  return [...samples, { ...first, path, payment, request: { ...first.request, url: paid.target.url(path) } }];
}

describe('refunds', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  let by: Operator;
  /** 0 to 3 are payers of one payment, the payer of 0 and 4 has two; 5 is served. */
  let samples: readonly Sample[];
  let ids: readonly string[];

  const idOf = (n: number) => ids[n] ?? '';
  const to = (n: number): Hex => samples[n]?.payer.address ?? '0x';
  const complete = (tx: string, more: Record<string, string> = {}) =>
    by.json(['refund', 'complete', '--tx', tx], more);
  const purses = (...payers: readonly number[]) =>
    Promise.all(payers.map((n) => paid.chain.balanceOf(to(n))));

  before(async () => {
    paid = await makePaidWorld();
    service = await paid.start(LATER);
    by = operator(paid.env);
    const open = await manySamples(paid, service, 'refund', 4);
    const served = await paid.samples(service, 'served', { count: 1 });
    samples = [...open, ...served];
    await leaveSettled(paid, service, open);
    for (const sample of served) assertDelivered(await sendPatiently(service, sample), sample);
    const { code, out } = await by.json(['--unknown']);
    assert.deepEqual([code, out.length], [EXIT.open, 5]);
    ids = samples.map(({ payment }) => {
      const row = out.find(({ nonce }: { nonce: string }) => nonce === payment.nonce.toLowerCase());
      return row?.id ?? '';
    });
  });
  after(() => paid.end());

  test('a payment that the chain shows as paid is not given up by hand: it is resolved, and its money is due', async () => {
    await by.fails(['refund', 'begin', idOf(0)], 1, /is unconfirmed: run "relay payments resolve/);
    const byHand = ['--by-hand', '--reason', 'I believe so'];
    await by.fails(['resolve', idOf(0), ...byHand, '--not-settled'], 1, /the chain answers \(paid\)/);
    await by.fails(['resolve', idOf(0), ...byHand, '--settled', UNKNOWN_TX], 1, /the chain answers \(paid\)/);
    // Without an answer of the chain too, a transaction that does not contain the transfer is refused.
    paid.node.rule(({ method }) => (method === 'eth_call' ? 'cut' : 'pass'));
    await by.fails(
      ['resolve', idOf(0), ...byHand, '--settled', UNKNOWN_TX],
      1,
      /does not contain the transfer/,
    );
    paid.node.blind(true);
    await by.fails(['resolve', idOf(0)], 2, /gives no usable answer/);
    await by.fails(['resolve', idOf(0), ...byHand, '--not-settled'], 1, /too early/);
    paid.node.blind(false);
    const { code, out, stderr } = await by.json(['resolve', idOf(0)]);
    assert.equal(stderr, '');
    assert.deepEqual([code, out.kind, out.evidence], [0, 'settled', 'chain']);
    assert.match(out.transaction, /^0x[0-9a-f]{64}$/);
    await resolveAll(paid, ids.slice(1, 5));
    const listed = await by.json([]);
    assert.deepEqual(
      listed.out.map(({ state }: { state: string }) => state),
      Array(5).fill('unserved'),
    );
    assert.deepEqual(await by.sums(), ['18000', '3000', '0', '15000']);
  });

  test('begun: one row a payer with the sum, and the header is refused, nothing sent, nothing charged', async () => {
    const { code, out } = await by.json(['refund', 'begin', idOf(0), idOf(1), idOf(4), idOf(0)]);
    assert.equal(code, 0);
    assert.deepEqual(
      out.map(({ payer, amount, payee, payments }: Record<string, unknown>) => [
        payer,
        amount,
        payee,
        payments,
      ]),
      [
        [to(0).toLowerCase(), '6000', paid.payTo.toLowerCase(), [idOf(0), idOf(4)]],
        [to(1).toLowerCase(), '3000', paid.payTo.toLowerCase(), [idOf(1)]],
      ],
    );
    const again = await by.run(['refund', 'begin', idOf(0), idOf(4), '--csv']);
    assert.equal(again.stdout.split('\n')[0], 'payer,amount,network,asset,payee,payments');
    assert.match(
      again.stdout,
      new RegExp(`\n${to(0).toLowerCase()},6000,eip155:8453,0x[0-9a-f]{40},0x[0-9a-f]{40},2\n$`, 'i'),
    );
    for (const n of [0, 1, 4]) {
      const sample = samples[n] ?? assert.fail();
      for (const version of [1, 2] as const) {
        const answer = await send(service, sample, { version });
        assertSaid(answer, 409, 'payment_reused');
        assert.match(answer.body.error.message, /refund of this payment has begun/);
      }
      assert.equal(paid.hits(sample), 0);
    }
    assert.deepEqual(await by.sums(), ['18000', '3000', '0', '15000']);
    const due = await by.run(['--refundable']);
    assert.equal(due.code, EXIT.open);
    assert.equal(due.stdout.match(/^refunding /gm)?.length, 3);
    await by.fails(['refund', 'begin', idOf(5) || 'payment-'], 2, /payment- and 64 hex digits/);
  });

  test('cancelled: the same header executes the call', async () => {
    const sample = samples[2] ?? assert.fail();
    assert.equal((await by.json(['refund', 'begin', idOf(2)])).code, 0);
    assertSaid(await send(service, sample), 409, 'payment_reused');
    assert.deepEqual((await by.json(['refund', 'cancel', idOf(2)])).out, { cancelled: [idOf(2)] });
    assertDelivered(await sendPatiently(service, sample), sample);
    const first = samples[0]?.payer;
    await paid.assertBooks(samples, ({ path, payer }) => ({
      calls: path === sample.path || path === '/served/0' ? 1 : 0,
      charges: payer === first ? 2 : 1,
    }));
    await by.fails(['refund', 'begin', idOf(2)], 1, /was made: use --served/);
    await by.fails(['refund', 'cancel', idOf(2)], 1, /no refund of .* has begun/);
  });

  test('too small, wrong sender, wrong token, to someone else, failed, unknown, no node: nothing is recorded', async () => {
    const wallet = newPayer().address;
    await paid.chain.mint([wallet], PURSE);
    const token = await placeToken(paid.chain, paid.payTo, PURSE);
    const one = [{ to: to(1), amount: 3000n }];
    const fails = async (tx: Hex, message: RegExp) =>
      by.fails(['refund', 'complete', '--tx', tx], 1, message);
    const small = await paid.refund([{ to: to(1), amount: 2999n }]);
    await fails(small, /moves less than 3000 units to 0x/);
    await fails(await sendBatch(paid.chain, wallet, one), /does not move money from the payee/);
    await fails(await sendBatch(paid.chain, paid.payTo, one, token), /moves another token/);
    const stranger = newPayer().address;
    const elsewhere = await sendBatch(paid.chain, paid.payTo, [{ to: stranger, amount: 1n }]);
    await fails(elsewhere, /moves nothing to a payer whose refund has begun/);
    const tooMuch = await sendBatch(paid.chain, paid.payTo, [...one, { to: stranger, amount: PURSE * 9n }]);
    await fails(tooMuch, /failed: nothing was transferred/);
    await fails(UNKNOWN_TX as Hex, /no block of eip155:8453 contains/);
    await by.fails(['refund', 'complete', '--tx', small], 1, /is not confirmed: wait \d+ blocks?/, {
      X402_CONFIRMATIONS: '50',
    });
    const dead = { X402_RPC_URL: 'http://127.0.0.1:1' };
    await by.fails(['refund', 'complete', '--tx', small], 2, /no usable answer/, dead);
    await by.fails(['refund', 'complete', '--tx', small], 2, /X402_RPC_URL is not set/, {
      X402_RPC_URL: '',
    });
    assert.deepEqual((await by.sums()).slice(2), ['0', '12000']);
  });

  test('several payers and several payments of one, in one transaction, by four operators at the same moment', async () => {
    const tx = await paid.refund([
      { to: to(0), amount: 6000n },
      { to: to(1), amount: 3000n },
    ]);
    const all = await Promise.all([1, 2, 3, 4].map(() => complete(tx)));
    const recorded = all.flatMap(({ code, out }) => {
      assert.deepEqual([code, out.refunds.length, out.uncovered], [0, 3, []]);
      return out.refunds.filter((refund: { recorded: boolean }) => refund.recorded);
    });
    assert.deepEqual(
      recorded.map(({ id, sender }: Record<string, unknown>) => [id, sender]).sort(),
      [idOf(0), idOf(1), idOf(4)].sort().map((id) => [id, paid.payTo.toLowerCase()]),
    );
    assert.deepEqual(await by.sums(), ['18000', '6000', '9000', '3000']);
    // With what the transfers that refunded nothing moved.
    assert.deepEqual(await purses(0, 1), [PURSE, PURSE + 2999n + 3000n]);
    for (const n of [0, 1, 4])
      assertSaid(await send(service, samples[n] ?? assert.fail()), 409, 'payment_reused');
    assert.equal((await complete(tx)).code, 0);
    await by.fails(['refund', 'begin', idOf(0)], 1, /is refunded/);
  });

  test('a used transaction refunds nothing more; a run that ended after its claim is continued, from the wallet for refunds', async () => {
    const wallet = newPayer().address;
    await paid.chain.mint([wallet], PURSE);
    assert.equal((await by.json(['refund', 'begin', idOf(3)])).code, 0);
    // One more payment of this payer.
    const served = samples[3] ?? assert.fail();
    const path = '/refund/late';
    const payment = await makePayment(served.payer, await challenge(`${service.url}${EXECUTE}`));
    const late = { ...served, path, payment, request: { ...served.request, url: paid.target.url(path) } };
    assertDelivered(await sendPatiently(service, late), late);
    const rows = (await by.json(['--all'])).out;
    const id = rows.find((row: { nonce: string }) => row.nonce === payment.nonce.toLowerCase()).id;
    const allowed = { X402_REFUND_FROM: wallet };
    const tx = await paid.refund([{ to: to(3), amount: 3000n }], wallet);
    await by.fails(['refund', 'complete', '--tx', tx], 1, /does not move money from the payee/);

    const deps = await openOperatorLog(paid.log.config);
    const { findTransfers } = operatorChain({ rpcUrl: paid.chain.url, confirmations: 0 }, deps.logger);
    const append: typeof deps.log.append = async (stream, expected, events) => {
      const stored = await deps.log.append(stream, expected, events);
      if (events[0]?.type === 'RefundClaimed') throw new Error('the process ends here');
      return stored;
    };
    const request = { transaction: tx, refundFrom: wallet.toLowerCase(), findTransfers };
    await assert.rejects(completeRefunds({ ...deps, log: { ...deps.log, append } }, request), /ends here/);
    await deps.log.close();
    await by.fails(['refund', 'cancel', idOf(3)], 1, /is claimed for the refund/);
    const { code, out } = await complete(tx, allowed);
    assert.equal(code, 0);
    assert.deepEqual(
      [out.refunds[0].id, out.refunds[0].sender, out.refunds[0].recorded],
      [idOf(3), wallet.toLowerCase(), true],
    );

    // A charge is returned although its call was made, on demand.
    assert.equal((await by.json(['refund', 'begin', id, '--served'])).code, 0);
    const used = await complete(tx, allowed);
    assert.equal(used.code, 1);
    assert.deepEqual(
      used.out.uncovered.map((one: Record<string, unknown>) => [one.id, one.reason]),
      [[id, 'transfer_used']],
    );
    assert.deepEqual((await by.json(['refund', 'cancel', id])).code, 0);
  });

  test('the lists, the sums and the audit agree with the chain', async () => {
    const all = await by.run(['--all', '--csv']);
    assert.equal(all.code, EXIT.good);
    const [header = '', ...rows] = all.stdout.trim().split('\n');
    assert.equal(rows.length, 7);
    assert.ok(
      header.startsWith(
        'id,state,payer,network,asset,amount,nonce,validBefore,transaction,refundTransaction,jobId',
      ),
    );
    const states = rows.map((row) => row.split(',')[1]).sort();
    assert.deepEqual(states, ['refunded', 'refunded', 'refunded', 'refunded', 'served', 'served', 'served']);
    const [sum, ...more] = (await by.json(['--sum', 'month'])).out;
    assert.deepEqual(
      [sum.charged, sum.served, sum.refunded, sum.open, more],
      ['21000', '9000', '12000', '0', []],
    );
    // The payee has what was served, less what the transfers that refunded nothing moved (2999 and 1 units), and what
    // came from another wallet.
    assert.equal(await paid.chain.balanceOf(paid.payTo), 9000n + 3000n - 3000n);
    const { code, stdout } = await runCli(['audit'], { env: by.env });
    assert.equal(code, 0, stdout);
  });
});
