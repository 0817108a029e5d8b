// The status page of a real service, after good and failing jobs and a restart: it agrees with the monitoring endpoint,
// and earlier measurements survive the restart.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { duration } from '#src/http/pages/status-plots.ts';
import { sleep } from '#src/lib/time.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { execute, get, makeWorld, type World } from '#test/support/service-world.ts';

type Percentiles = { readonly p50: number; readonly p95: number };
type Summary = {
  readonly ok: boolean;
  readonly attention: readonly string[];
  readonly failureRate: number;
  readonly stats: Readonly<Record<string, number>>;
  readonly series: readonly {
    readonly at: string;
    readonly succeeded: number;
    readonly failed: number;
    readonly durationMs: Percentiles | null;
  }[];
  readonly durations: { readonly p50Ms: number; readonly p95Ms: number } | null;
  readonly recentFailures: readonly { readonly jobId: string }[];
};

const SLOW_MS = 700;

let world: World;
let service: Service;
let failedJobs: readonly string[];
let earlier: Summary;
let summary: Summary;
let page: string;

/** As soon as it contains all six jobs. */
const counted = () =>
  waitFor('all are counted', async () => {
    const address = `${service.url}/api/monitoring/executions?windowMs=3600000`;
    const { status, body } = await get<Summary>(address);
    return status === 200 && body.stats.succeeded === 4 && body.stats.failed === 2 && body;
  });
const sum = (of: (bucket: Summary['series'][number]) => number) =>
  summary.series.reduce((total, bucket) => total + of(bucket), 0);

describe('status page', () => {
  before(async () => {
    world = await makeWorld();
    service = await world.start();
    const run = async (path: string) => (await execute(service, { url: world.target.url(path) })).body.job;
    world.target.answer(async ({ path }) => {
      if (path === '/slow') await sleep(SLOW_MS);
      return { status: path === '/fails' ? 500 : 200, body: 'done' };
    });
    for (const path of ['/good', '/good', '/good', '/slow'])
      assert.equal((await run(path)).status, 'succeeded');
    failedJobs = [(await run('/fails')).id, (await run('/fails')).id];
    earlier = await counted();
    assert.equal((await service.stop()).code, 0);
    service = await world.start();
    summary = await counted();
    // A figure and its unit stay on one line.
    page = (await get<string>(`${service.url}/status?windowMs=3600000`)).body.replaceAll('\u00a0', ' ');
  });
  after(() => world.end());

  test('the series equals the stats, bucket by bucket, and survives a restart', () => {
    assert.deepEqual([sum(({ succeeded }) => succeeded), sum(({ failed }) => failed)], [4, 2]);
    assert.equal(summary.failureRate, 1 / 3);
    assert.ok(summary.series.length >= 60 && summary.series.length <= 62);
    assert.deepEqual(summary.durations, earlier.durations);
    const busy = (of: Summary) => of.series.filter(({ succeeded, failed }) => succeeded + failed > 0);
    assert.deepEqual(busy(summary), busy(earlier));
  });

  test('the durations are those of the executions: the slowest of six is the 95th percentile', () => {
    const { p50Ms, p95Ms } = summary.durations ?? { p50Ms: Number.NaN, p95Ms: Number.NaN };
    assert.ok(p50Ms > 0 && p50Ms <= p95Ms);
    assert.ok(p95Ms >= SLOW_MS / 1.28, `${p95Ms}`);
  });

  test('the page shows the same: failures with their proofs, counts, durations, attention', () => {
    assert.deepEqual(
      summary.recentFailures.map(({ jobId }) => jobId),
      failedJobs.toReversed(),
    );
    assert.deepEqual([summary.ok, summary.attention], [false, ['failure_rate']]);
    assert.match(page, /<h1>Status: <span class="attention">attention<\/span><\/h1>/);
    for (const jobId of failedJobs) assert.ok(page.includes(`<a href="/proof/${jobId}">`));
    assert.ok(page.includes('<dt>Executions</dt><dd>6<'));
    assert.ok(page.includes('<dt>Failure rate</dt><dd>33.3 %<'));
    assert.ok(page.includes(`<dt>Median duration</dt><dd>${duration(summary.durations?.p50Ms ?? 0)}<`));
    assert.match(page, /Executions finished: at most \d in 1 min/);
  });
});
