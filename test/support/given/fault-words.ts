// What a service with a part away must say, in the contract's words, and what must stand when the part is back.
import assert from 'node:assert/strict';
import type { EventStoreServer } from '#test/support/log/eventstore-server.ts';
import type { Service } from '#test/support/process/service.ts';
import { jobTypes } from '#test/support/world/service-log.ts';
import { payloadOf } from '#test/support/world/service-receipts.ts';
import {
  type Answered,
  type ErrorBody,
  type Executed,
  execute,
  get,
  type World,
} from '#test/support/world/service-world.ts';

export type Part = 'eventLog' | 'readModels' | 'projections';
type Health = {
  readonly ok: boolean;
  readonly checks: Readonly<Record<Part, { readonly ok: boolean }>>;
};
export type JobView = {
  readonly status: 'running' | 'succeeded' | 'failed';
  readonly errorCategory: string | null;
  readonly receiptId: string | null;
  readonly attemptLog: readonly { readonly sent: string; readonly errorCategory: string | null }[];
};
export type Stats = { readonly total: number; readonly running: number };

export const monitoring = (service: Service) =>
  get<{ readonly stats: Stats } & ErrorBody>(`${service.url}/api/monitoring/executions`);
export const jobOf = (service: Service, id: string) =>
  get<JobView & ErrorBody>(`${service.url}/api/jobs/${id}`);
export const hitsOf = ({ target }: Pick<World, 'target'>, path: string): number =>
  target.requests.filter((request) => request.path === path).length;

type Away = 'event_log_unavailable' | 'read_models_unavailable';

export function assertAway({ status, headers, body }: Answered<unknown>, code: Away, where = ''): void {
  const { error } = body as Partial<ErrorBody>;
  assert.deepEqual([status, error?.code], [503, code], `${where} ${JSON.stringify(body)}`);
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/, where);
}

/** Every read is 503, and in time. */
export async function assertReadsAway(
  service: Service,
  { links }: Executed,
  withinMs: number,
  ...more: readonly string[]
): Promise<void> {
  const linked = Object.values(links).map((link) => new URL(link).pathname);
  const lists = ['/api/proofs/recent', '/api/monitoring/executions', '/api/trust', '/api/decisions/recent'];
  await Promise.all(
    [...linked, ...lists, ...more].map(async (path) => {
      const begun = performance.now();
      assertAway(await get(`${service.url}${path}`), 'read_models_unavailable', path);
      const took = performance.now() - begun;
      assert.ok(took < withinMs, `${path} ${took} ms`);
    }),
  );
  await assertHealth(service, 'readModels');
}

/** `away`: the parts that are not ok; the status is 503 where the log is one of them. Liveness depends on no part. */
export async function assertHealth(service: Service, ...away: readonly Part[]): Promise<void> {
  const { status, body } = await get<Health>(`${service.url}/health`);
  const { eventLog, readModels, projections } = body.checks;
  const parts: Record<Part, { readonly ok: boolean }> = { eventLog, readModels, projections };
  const notOk = Object.entries(parts).flatMap(([name, { ok }]) => (ok ? [] : [name]));
  assert.deepEqual([notOk, body.ok], [away, away.length === 0]);
  assert.equal(status, away.includes('eventLog') ? 503 : 200);
  assert.equal((await get(`${service.url}/health/live`)).status, 200);
}

export async function isHealthy({ url }: Service): Promise<boolean> {
  return (await get<Health>(`${url}/health`)).body.ok;
}

/** A repeat with its key brings what was answered before. */
export async function assertReplays(service: Service, request: unknown, first: Executed): Promise<void> {
  const { status, body } = await execute(service, request);
  assert.deepEqual(
    [status, body.idempotentReplay, body.job, body.receipt.jws],
    [first.job.status === 'succeeded' ? 200 : 502, true, first.job, first.receipt.jws],
  );
}

/** Why and whether sent, by attempt, as the signed receipt says. */
export const attemptsIn = ({ receipt }: Executed) =>
  payloadOf(receipt.jws).attempts.map(({ sent, errorCategory }) => [sent, errorCategory]);

/** Every job has begun once and ended once, in one set of events; answers how many jobs there are. */
export function assertOneSetEach({ events }: Pick<EventStoreServer, 'events'>): number {
  const jobs = jobTypes(events);
  for (const [id, [first, ...types]] of jobs) {
    assert.equal(first, 'JobStarted', id);
    const [completed, receipt] = types.splice(-2);
    assert.deepEqual([completed, receipt], ['JobCompleted', 'ReceiptSigned'], id);
    assert.ok(types.length >= 1 && types.every((type) => type === 'AttemptMade'), `${id}: ${types}`);
  }
  const ids = events.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, 'no event stands twice');
  return jobs.size;
}
