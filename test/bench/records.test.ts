// The rows that P4 and P7 read: the read models answer what the rows add up to.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import postgres from 'postgres';
import { jobQueries } from '#projections/job/query.ts';
import { monitoringQueries, windowStart } from '#projections/monitoring/query.ts';
import { proofQueries } from '#projections/proof/query.ts';
import { storeQueries } from '#projections/read-models.ts';
import { receiptQueries } from '#projections/receipt/query.ts';
import { transparencyQueries } from '#projections/transparency/query.ts';
import { trustQueries } from '#projections/trust/query.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { recordsOf, removeRecords } from './records.ts';

const needs = needsPostgres();
const JOBS = 3000;
const DAY_MS = 86_400_000;

after(removeRecords);

test('bench records: the read models answer what the rows add up to', needs, async () => {
  const { url, schema, ids } = await recordsOf(JOBS);
  const client = postgres(url, { max: 1, connection: { search_path: `"${schema}"` } });
  const store = postgresReadStore({ url, connections: 2 });
  try {
    const db = await store.open(schema);
    const now = Date.now();
    const since = windowStart(now, DAY_MS);
    const [rows] = await client`select
      (select count(*)::int from jobs) as jobs,
      (select count(*)::int from receipts) as receipts,
      (select count(*)::int from receipts where verified) as verified,
      (select count(*)::int from receipts where verified and signed_at >= ${since}) as "recentVerified",
      (select max(signed_at) from receipts where verified) as "latestVerifiedAt",
      (select count(*)::int from proofs where status = 'succeeded') as succeeded,
      (select count(*)::int from proofs where status = 'failed') as failed,
      (select count(*)::int from proofs where status = 'succeeded' and completed_at >= ${since}) as "recentSucceeded",
      (select count(*)::int from proofs where status = 'failed' and completed_at >= ${since}) as "recentFailed",
      (select count(distinct leaf_index)::int from transparency_leaves join receipts using (id)) as leaves,
      (select count(*)::int from jobs j join proofs p on p.job_id = j.id join receipts r on r.job_id = j.id
        where p.receipt_id = r.id and j.receipt_id = r.id and p.created_at = j.created_at) as whole`;
    const recent = await client`select job_id from proofs order by created_at desc, job_id desc limit 10`;
    assert.ok(rows !== undefined);
    assert.equal(rows.jobs, JOBS);
    assert.equal(rows.whole, JOBS, 'every job has a proof and a receipt of its own');
    assert.equal(rows.leaves, JOBS, 'every receipt has a leaf of its own');
    assert.ok(rows.recentSucceeded > 0 && rows.recentFailed > 0 && rows.recentVerified < rows.verified);

    const { stats } = await monitoringQueries(db).summary(now, DAY_MS);
    assert.partialDeepStrictEqual(stats, {
      total: rows.jobs,
      succeeded: rows.succeeded,
      failed: rows.failed,
      recentSucceeded: rows.recentSucceeded,
      recentFailed: rows.recentFailed,
    });
    assert.deepEqual(await trustQueries(db).receipts(since), {
      receipts: rows.receipts,
      verified: rows.verified,
      recentVerified: rows.recentVerified,
      latestVerifiedAt: rows.latestVerifiedAt,
    });
    assert.deepEqual(await storeQueries(db).counts(), { jobs: rows.jobs, receipts: rows.receipts });
    assert.equal(await storeQueries(db).countUnverified(), rows.receipts - rows.verified);
    const newest = await proofQueries(db).recent(10);
    assert.deepEqual(
      newest.map(({ jobId }) => jobId),
      recent.map((row) => row.job_id),
    );
    assert.ok(ids.length > 0);
    for (const { job, receipt } of ids.slice(0, 20)) {
      assert.equal((await jobQueries(db).find(job))?.receiptId, receipt);
      assert.equal((await receiptQueries(db).find(receipt))?.jobId, job);
      assert.notEqual(await transparencyQueries(db).leafIndex(receipt), null);
    }
  } finally {
    await store.close();
    await client.end();
  }
});
