// Refunds on a real chain: charged calls that were not served are returned by a real transfer, recorded, and never
// executed afterwards.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { findTransfer } from '#src/app/buyer.ts';
import { openOperatorLog } from '#src/app/operator.ts';
import { listPayments } from '#src/usecases/payments/list-payments.ts';
import { type ClaimedTransfer, recordRefund } from '#src/usecases/payments/record-refund.ts';
import { resolvePayment } from '#src/usecases/payments/resolve-payment.ts';
import { runCli } from '#test/support/cli.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { assertSaid, each, send, sendPatiently } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { LONG } from '#test/support/property-runs.ts';
import type { Service } from '#test/support/service.ts';

const needs = needsAnvil();
const postgres = needsPostgres();

type Row = { readonly id: string; readonly payer: string; readonly state: string };

describe('refunds', () => {
  let paid: PaidWorld;
  let service: Service;
  let samples: readonly Sample[];
  let rows: readonly Row[];
  let env: Record<string, string>;

  const payments = (...args: string[]) => runCli(['payments', ...args], { env });
  const idOf = (n: number) => {
    const payer = samples[n]?.payer.address.toLowerCase();
    return rows.find((row) => row.payer === payer)?.id ?? '';
  };
  const transfer = (sample: Sample | undefined, amount: bigint) =>
    paid.transfer(sample?.payer.address ?? '0x', amount);
  const balance = async () => {
    const { code, stdout } = await payments('--balance', '--json');
    const [row] = JSON.parse(stdout);
    return [code, row.charged, row.served, row.refunded, row.open];
  };

  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld();
    service = await paid.start();
    env = paid.env as Record<string, string>;
    samples = await paid.samples(service, 'refund', { count: 4 });
    // The last one is served. Of the others the settlement succeeds and its answer is lost.
    await paid.leaveUnknown(samples.slice(0, 3), 'cut', (sample) => sendPatiently(service, sample));
    await paid.assertBooks(samples.slice(0, 3), { calls: 0, charges: 1 });
    const served = samples[3];
    if (served !== undefined) assert.equal((await sendPatiently(service, served)).status, 200);
    await paid.assertBooks(samples.slice(3), { calls: 1, charges: 1 });
    rows = JSON.parse((await payments('--unknown', '--json')).stdout);
    assert.equal(rows.length, 3);
    for (const { id } of rows) assert.equal((await payments('resolve', id, '--settled')).code, 0);
  });
  after(() => paid?.end());

  test('before: charged = served + open', needs, async () => {
    assert.deepEqual(await balance(), [0, '12000', '3000', '0', '9000']);
  });

  test('a transfer that is too small, to someone else, or unknown refunds nothing', needs, async () => {
    const small = await transfer(samples[0], 2999n);
    const elsewhere = await transfer(samples[1], 3000n);
    const unknown = `0x${'7'.repeat(64)}`;
    for (const [hash, message] of [
      [small, /transferred less than/],
      [elsewhere, /transferred less than/],
      [unknown, /has no transaction/],
    ] as const) {
      const { code, stdout, stderr } = await payments('refund', idOf(0), '--tx', hash);
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, message);
    }
    assert.deepEqual(await balance(), [0, '12000', '3000', '0', '9000']);
  });

  test('a transfer of the amount is recorded as verified, and refunds no other payment', needs, async () => {
    const hash = await transfer(samples[0], 3000n);
    const { code, stdout, stderr } = await payments('refund', idOf(0), '--tx', hash, '--json');
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout).verified, true);
    const again = await payments('refund', idOf(1), '--tx', hash);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /one transfer refunds once/);
    assert.deepEqual(await balance(), [0, '12000', '3000', '3000', '6000']);
  });

  test(
    'the payment header of a refunded payment executes nothing; that of an unserved one does',
    needs,
    async () => {
      const [refunded, , unserved] = samples;
      if (refunded === undefined || unserved === undefined) throw new Error('samples are missing');
      const answer = await send(service, refunded);
      assertSaid(answer, 409, 'payment_reused');
      assert.equal(paid.hits(refunded), 0);
      assert.equal((await sendPatiently(service, unserved)).status, 200);
      assert.deepEqual(await balance(), [0, '12000', '6000', '3000', '3000']);
    },
  );

  test('refunded payments execute nothing', needs, () => assertRefunded(paid, [service, service]));

  test('the audit has no finding', needs, async () => {
    const { code, stdout } = await runCli(['audit'], { env });
    assert.equal(code, 0, stdout);
  });
});

if (LONG)
  describe('refunds, on two processes', () => {
    const both = { skip: needs.skip || postgres.skip };
    let server: PostgresServer;
    let paid: PaidWorld;
    before(async () => {
      if (both.skip) return;
      server = await postgresServer();
      paid = await makePaidWorld();
    });
    after(async () => {
      await paid?.end();
      await server?.remove();
    });

    test('refunded payments execute nothing at either', both, async () => {
      const DATABASE_URL = await server.newDatabase();
      // One after the other: the first makes the key file.
      const left = await paid.start({ DATABASE_URL });
      await assertRefunded(paid, [left, await paid.start({ DATABASE_URL })]);
      const { code, stdout } = await runCli(['audit'], { env: paid.env });
      assert.equal(code, 0, stdout);
    });
  });

/** Charged, not served, and refunded by a transfer each: their headers execute nothing. */
async function assertRefunded(paid: PaidWorld, pair: readonly [Service, Service]): Promise<void> {
  const samples = await paid.samples(pair[0], 'many');
  await paid.leaveUnknown(samples, 'cut', (sample, n) => sendPatiently(pair[n % 2] ?? pair[0], sample));
  await paid.assertBooks(samples, { calls: 0, charges: 1 });
  const deps = await openOperatorLog({ dataDir: paid.dataDir, eventStoreUrl: null });
  try {
    for (const { id, payer } of await listPayments(deps, new Set(['unknown']))) {
      const sample = samples.find((of) => of.payer.address.toLowerCase() === payer);
      if (sample === undefined) continue;
      await resolvePayment(deps, id, { kind: 'settled', transaction: null });
      const transaction = await paid.transfer(sample.payer.address, 3000n);
      const request = {
        transaction,
        findTransfer: (of: ClaimedTransfer) => findTransfer(paid.chain.url, of),
      };
      const refunded = await recordRefund(deps, { id, ...request });
      assert.equal(refunded.outcome, 'refunded', JSON.stringify(refunded));
    }
  } finally {
    await deps.log.close();
  }
  await each(samples, async (sample) => {
    for (const service of pair) assertSaid(await send(service, sample), 409, 'payment_reused');
    assert.equal(paid.hits(sample), 0);
    assert.equal(await paid.chain.balanceOf(sample.payer.address), 30_000n);
  });
}
