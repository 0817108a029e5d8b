// Part of the suite over every read store: the ledger of payments, as the reconciler reads it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLedger } from '#src/usecases/payments/read-ledger.ts';
import {
  at,
  chainReconciled,
  jobCompleted,
  jobStarted,
  paymentMissing,
  paymentRejected,
  paymentReserved,
  paymentSettled,
} from '#test/support/given/given-events.ts';
import { appendAll } from '#test/support/given/job-histories.ts';
import { withoutNonces } from '#test/support/log/read-model-rows.ts';
import { commonLog, modelsOver, project, type ReadStoreHarness } from '#test/support/log/read-store.ts';

const streamOf = (n: number) => `payment-${String(n).repeat(64)}`;
const reserved = (n: number) => paymentReserved({ jobId: `job_${n}`, reservedAt: at(n) });
const settled = (n: number) => paymentSettled({ jobId: `job_${n}`, settledAt: at(100 - n) });

/** Open, served, confirmed, refused, and missing after it was served. */
async function history() {
  const log = await commonLog();
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = reserved(1).data;
  const paid = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction: null };
  const served = (n: number) => ({
    stream: `job-job_${n}`,
    events: [
      jobStarted({ jobId: `job_${n}`, mode: 'x402', payment: paid, paymentStream: streamOf(n) }),
      jobCompleted({ jobId: `job_${n}` }),
    ],
  });
  const charged = (n: number) => ({ stream: streamOf(n), events: [reserved(n), settled(n)] });
  await appendAll(log, [charged(1), charged(2), served(2), charged(3), served(3), charged(5), served(5)]);
  const refused = paymentRejected({ jobId: 'job_4', evidence: 'facilitator' });
  await appendAll(log, [{ stream: streamOf(4), events: [reserved(4), refused] }]);
  const confirmed = [streamOf(3).slice('payment-'.length)];
  const round = chainReconciled({ confirmed });
  await appendAll(log, [{ stream: `chain-${network}:${payTo}`.toLowerCase(), events: [round] }]);
  await appendAll(log, [{ stream: streamOf(5), events: [paymentMissing({ jobId: 'job_5' })] }]);
  return log;
}

export function ledgerContract(harness: ReadStoreHarness): void {
  test('the ledger is that of the log; of candidates the oldest, of sums those of all', async () => {
    const store = await harness.fresh();
    const log = await history();
    const db = await project(log, store);
    const models = modelsOver(db);
    const whole = await models.payment.ledger(100, at(0));
    assert.deepEqual(whole, withoutNonces(await readLedger(log)));
    assert.deepEqual([...whole.entries.keys()], [streamOf(1), streamOf(5)]);
    assert.deepEqual([...whole.unconfirmed.keys()].sort(), [streamOf(1), streamOf(2)]);
    const [sums] = whole.books;
    assert.deepEqual([sums?.charged, sums?.served, sums?.missing], [12_000n, 9000n, 3000n]);
    const few = await models.payment.ledger(1, '9999');
    assert.deepEqual([[...few.entries.keys()], [...few.unconfirmed.keys()]], [[streamOf(1)], [streamOf(2)]]);
    assert.deepEqual([few.refused.size, few.books, few.comparisons], [0, whole.books, whole.comparisons]);
  });
}
