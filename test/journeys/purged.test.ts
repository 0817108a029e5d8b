// A job older than RETENTION_JOBS_DAYS, through the real service: removed from the answers, kept in its receipt and the totals; a receipt older
// than RETENTION_RECEIPTS_DAYS is answered from the log.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { appendAll, jobAppends, jobIdOf, PLAN, receiptIdOf } from '#test/support/job-histories.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { withLog } from '#test/support/service-log.ts';
import { type ErrorBody, get, makeWorld, type World } from '#test/support/service-world.ts';

const DAY_MS = 86_400_000;

let world: World;
let service: Service;
const status = async (path: string) => (await get(`${service.url}${path}`)).status;

describe('retention', () => {
  before(async () => {
    world = await makeWorld();
    mkdirSync(world.dataDir, { recursive: true });
    const ago = (days: number) => ({ startedAtMs: Date.now() - days * DAY_MS });
    const jobs = [
      ...jobAppends({ ...PLAN, seed: 1, ...ago(50) }),
      ...jobAppends({ ...PLAN, seed: 2, ...ago(5) }),
      ...jobAppends({ ...PLAN, seed: 3, ...ago(1) }),
    ];
    await withLog(world.dataDir, (log) => appendAll(log, jobs));
    service = await world.start({ RETENTION_JOBS_DAYS: '3' });
    await waitFor('the old jobs are gone', async () => (await status(`/api/jobs/${jobIdOf(2)}`)) === 404);
  });
  after(() => world.end());

  test('older jobs are removed, a newer one is kept; every receipt is answered, from the rows or from the log', async () => {
    const missing = await get<ErrorBody>(`${service.url}/api/jobs/${jobIdOf(1)}`);
    assert.deepEqual([missing.status, missing.body.error.code], [404, 'job_not_found']);
    assert.equal(await status(`/api/verify/jobs/${jobIdOf(2)}`), 404);
    assert.equal(await status(`/api/jobs/${jobIdOf(3)}`), 200);
    // The row of the first receipt is gone, that of the second is not.
    for (const seed of [1, 2]) {
      const receipt = await get<{ id: string }>(`${service.url}/api/receipts/${receiptIdOf(seed)}`);
      assert.deepEqual([receipt.status, receipt.body.id], [200, receiptIdOf(seed)]);
      assert.equal(await status(`/api/verify/receipts/${receiptIdOf(seed)}`), 200);
    }
    assert.equal(await status(`/api/receipts/${receiptIdOf(4)}`), 404);
  });

  test('the totals include purged jobs; the stored ones are counted separately', async () => {
    const monitoring = await get<{ stats: { total: number } }>(`${service.url}/api/monitoring/executions`);
    assert.equal(monitoring.body.stats.total, 3);
    const trust = await get<{ storage: { jobs: number; receipts: number } }>(`${service.url}/api/trust`);
    assert.deepEqual([trust.body.storage.jobs, trust.body.storage.receipts], [1, 2]);
  });
});
