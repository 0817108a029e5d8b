// Whether what one service answered stands, on it or on another over the same log.
import assert from 'node:assert/strict';
import type { Service } from '#test/support/process/service.ts';
import { SERVED_CHECKS } from './service-receipts.ts';
import { type Executed, get, type Report } from './service-world.ts';

/** What was answered stands on this service: its receipt, and its job with all checks. */
export async function assertStands(service: Service, answered: Executed): Promise<void> {
  const { job, receipt } = answered;
  const stored = await get<{ jws: string; verified: boolean }>(`${service.url}/api/receipts/${receipt.id}`);
  assert.deepEqual([stored.status, stored.body.jws, stored.body.verified], [200, receipt.jws, true]);
  await assertJobVerifies(service, job.id);
}

export async function assertJobVerifies(service: Service, jobId: string): Promise<void> {
  const { status, body } = await get<Report>(`${service.url}/api/verify/jobs/${jobId}`);
  assert.deepEqual([status, body.jobId], [200, jobId]);
  assert.deepEqual(
    body.checks.map(({ name, ok }) => [name, ok]),
    SERVED_CHECKS.map((name) => [name, true]),
  );
}
