// Many refunds beside calls and each other: who presents its payment while the refund begins gets its call or its money,
// never both; and each transfer is recorded once, however many operators record it at the same moment.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { operatorChain } from '#src/app/chain.ts';
import { openOperatorLog } from '#src/app/operator.ts';
import { beginPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { completeRefunds } from '#src/usecases/payments/complete-refund.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { assertSaid, each, type Sent, send } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, SAMPLES, type Sample } from '#test/support/paid-world.ts';
import { LATER, leaveSettled, type Operator, operator, resolveAll } from '#test/support/refund-operator.ts';
import type { Service } from '#test/support/service.ts';

const needs = needsAnvil();

describe('many refunds', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  let by: Operator;
  before(async () => {
    paid = await makePaidWorld();
    service = await paid.start(LATER);
    by = operator(paid.env);
  });
  after(() => paid.end());

  type Charged = Sample & { readonly id: string };

  /** Charged, and not started. */
  async function charged(row: string, count = SAMPLES): Promise<Charged[]> {
    const samples = await paid.samples(service, row, { count });
    await leaveSettled(paid, service, samples);
    const rows: readonly { id: string; payer: string }[] = (await by.json(['--unknown'])).out;
    await resolveAll(
      paid,
      rows.map(({ id }) => id),
    );
    return samples.map((sample) => {
      const row = rows.find(({ payer }) => payer === sample.payer.address.toLowerCase());
      return { ...sample, id: row?.id ?? assert.fail() };
    });
  }

  const openLogs = (count: number) =>
    Promise.all(Array.from({ length: count }, () => openOperatorLog(paid.log.config)));

  /** Refused; or its job was started at the same moment, and closed without sending anything. */
  function assertNothingSent(sent: Sent): void {
    if (sent.status === 409) assertSaid(sent, 409, 'payment_reused', 'idempotency_in_progress');
    else assert.equal(sent.body.job.errorCategory, 'not_executed', JSON.stringify(sent.body));
  }

  test('a header that is presented while its refund begins: the call or the money', async () => {
    const samples = await charged('racing');
    const [deps = assert.fail()] = await openLogs(1);
    const { lookUp } = operatorChain({ rpcUrl: paid.chain.url, confirmations: 0 }, deps.logger);
    const outcomes = await each(samples, async (sample) => {
      const [begun, sent] = await Promise.all([
        beginPaymentRefund({ ...deps, lookUp }, sample.id, { includeServed: false, statement: null }),
        send(service, sample),
      ]);
      if (sent.status !== 200) assertNothingSent(sent);
      return begun.outcome !== 'refused';
    });
    const begunOf = (sample: Sample) => outcomes[samples.findIndex(({ path }) => path === sample.path)];
    const begun = samples.filter(begunOf);
    for (const sample of begun) assertNothingSent(await send(service, sample));
    await paid.assertBooks(samples, (sample) => ({
      calls: begunOf(sample) ? 0 : paid.hits(sample),
      charges: 1,
    }));
    for (const { payer } of begun) {
      const transaction = await paid.refund([{ to: payer.address, amount: 3000n }]);
      assert.equal((await by.json(['refund', 'complete', '--tx', transaction])).code, 0);
    }
    await paid.assertBooks(samples, (sample) =>
      begunOf(sample) ? { calls: 0, charges: 0 } : { calls: paid.hits(sample), charges: 1 },
    );
    await deps.log.close();
  });

  test('begun: refused at every process; four operators record each transfer once; then refused', async () => {
    const samples = await charged('many');
    assert.equal((await by.json(['refund', 'begin', ...samples.map(({ id }) => id)])).code, 0);
    const assertRefused = () =>
      each(samples, async (sample) => {
        for (const version of [1, 2, 2] as const)
          assertSaid(await send(service, sample, { version }), 409, 'payment_reused');
        assert.equal(paid.hits(sample), 0);
      });
    await assertRefused();
    const operators = await openLogs(4);
    for (const { payer } of samples) {
      const transaction = await paid.refund([{ to: payer.address, amount: 3000n }]);
      const all = await Promise.all(
        operators.map((deps) => {
          const { findTransfers } = operatorChain({ rpcUrl: paid.chain.url, confirmations: 0 }, deps.logger);
          return completeRefunds(deps, { transaction, refundFrom: null, findTransfers });
        }),
      );
      const refunds = all.flatMap((done) => (done.outcome === 'completed' ? done.refunds : assert.fail()));
      assert.equal(refunds.filter(({ recorded }) => recorded).length, 1);
    }
    for (const { log } of operators) await log.close();
    await assertRefused();
    await paid.assertBooks(samples, { calls: 0, charges: 0 });
  });
});
