// Monitoring and trust on the wire: the read models' verdicts, and what this process knows of itself.

import { Type } from '@sinclair/typebox';
import { type ExecutionSeries, windowStart } from '#projections/monitoring/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { attentionReasons, executionStatus } from '#src/domain/monitoring/alert-rules.ts';
import { Closed, Count, Instant, Nullable, OneOf } from '#src/domain/schema-parts.ts';
import type { ProgressOf, ReadsOf, Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { ProcessFigures, type ProcessMeter } from '#src/http/instrumentation.ts';
import { type IntegerParameter, readInteger } from '#src/http/request/validation.ts';
import { type Links, linksFrom } from '#src/http/response/links.ts';
import { type Moment, ofTheMoment } from '#src/http/response/response-cache.ts';
import type { Clock } from '#src/ports/clock.ts';
import { ProofSummary, proofSummary, REDACTION_POLICY, RedactionPolicy } from './proofs.ts';

export const Status = OneOf('ok', 'attention');

const AttentionReason = OneOf('failure_rate', 'overdue_job', 'unverified_receipt', 'projection_lag');

export const JobStats = Closed({
  total: Count,
  succeeded: Count,
  failed: Count,
  running: Count,
  recentTotal: Count,
  recentSucceeded: Count,
  recentFailed: Count,
  recentRunning: Count,
  lastUpdatedAt: Nullable(Instant),
});

const MINUTE_MS = 60_000;

const SIZES = [1, 5, 15, 30, 60, 120, 360, 480].map((minutes) => minutes * MINUTE_MS);
/** Of whole buckets: one more begins before the window. */
const BUCKETS_MAX = 99;

/** The finest bucket of which a window has no more than can be drawn. */
export function bucketMs(windowMs: number): number {
  return SIZES.find((size) => windowMs <= size * BUCKETS_MAX) ?? 480 * MINUTE_MS;
}

/**
 * The first minute of each bucket, `YYYY-MM-DDTHH:MM`, from `since` (a minute) to `nowMs`. Buckets begin at multiples of
 * their size since the Unix epoch: the first one often before the window, of which it holds only its part.
 */
export function bucketStarts(since: string, nowMs: number, sizeMs: number): readonly string[] {
  const first = Math.floor(Date.parse(`${since}:00.000Z`) / sizeMs);
  const last = Math.max(first, Math.floor(nowMs / sizeMs));
  return Array.from({ length: last - first + 1 }, (_, at) =>
    new Date((first + at) * sizeMs).toISOString().slice(0, 16),
  );
}

const Duration = Type.Number({ minimum: 0 });

const Series = Type.Array(
  Closed({
    at: Instant,
    succeeded: Count,
    failed: Count,
    durationMs: Nullable(Closed({ p50: Duration, p95: Duration })),
  }),
  {
    maxItems: BUCKETS_MAX + 1,
    description:
      'Finished executions of the window, oldest first: evenly spaced, each entry from its `at` to the next one’s. The first begins at or before the window and holds only what is in it. Durations are estimates from counted classes, 28 % off at most (below 25 ms: 25 ms); null where none is known.',
  },
);
const Durations = Nullable(
  Closed(
    { p50Ms: Duration, p95Ms: Duration },
    'Of all executions of the window that ended by themselves: from the first attempt to the receipt.',
  ),
);
export const MonitoringResponse = Closed({
  ok: Type.Boolean(),
  status: Status,
  attention: Type.Array(AttentionReason, {
    description: 'Why the status is `attention`; empty where it is ok.',
  }),
  windowMs: Type.Integer({ minimum: LIMITS.monitoringWindowMs.min }),
  failureRate: Type.Number({ minimum: 0, maximum: 1 }),
  stats: JobStats,
  series: Series,
  durations: Durations,
  recentFailures: Type.Array(ProofSummary),
  redactionPolicy: RedactionPolicy,
  process: ProcessFigures,
  projection: Closed({ lagEvents: Nullable(Count), lagMs: Type.Number({ minimum: 0 }) }),
});
export type MonitoringResponse = typeof MonitoringResponse.static;

export const windowMs: IntegerParameter = {
  name: 'windowMs',
  ...LIMITS.monitoringWindowMs,
  description: 'Milliseconds back from now; counted in whole minutes.',
};

export function monitoringRoutes(summaries: Summaries): Endpoint[] {
  const operation = {
    query: windowMs,
    answers: { 200: ['The summary.', MonitoringResponse] },
    errors: { 400: 'windowMs is out of bounds.', 503: 'The read models are unavailable.' },
  } as const;
  return [
    endpoint(ROUTES.monitoring, operation, async ({ request }) => {
      const wanted = readInteger(request.url, windowMs);
      return typeof wanted === 'number' ? summaries(wanted) : wanted;
    }),
  ];
}

export type MeasureDeps = ReadsOf<'monitoring' | 'receipt'> & ProgressOf<'lag'> & { readonly clock: Clock };

/** What the attention rule judges, and what of it is shown. */
export async function measure(
  { reads, progress, clock }: MeasureDeps,
  windowMs: number,
  nowMs = clock.now(),
) {
  const [{ stats, failureRate, overdue }, unverifiedReceipts] = await Promise.all([
    reads.monitoring.summary(nowMs, windowMs),
    reads.receipt.countUnverified(),
  ]);
  const { lagEvents, lagMs } = progress.lag();
  const { recentSucceeded, recentFailed } = stats;
  const facts = { recentSucceeded, recentFailed, overdue, unverifiedReceipts, lagMs };
  const projection = { lagEvents, lagMs };
  return {
    status: executionStatus(facts),
    attention: attentionReasons(facts),
    stats,
    failureRate,
    projection,
  };
}

export type Summaries = (windowMs: number) => Promise<MonitoringResponse>;

export type SummaryDeps = Moment & MeasureDeps & ReadsOf<'proof'> & Settings<'baseUrl'>;

/** The same for machines and on the page for people. The figures of this process are as of now. */
export function monitoringSummaries(deps: SummaryDeps, meter: ProcessMeter): Summaries {
  const links = linksFrom(deps.settings.baseUrl);
  const counted = ofTheMoment(deps, (windowMs: number) => countedOf(deps, links, windowMs));
  return async (windowMs) => ({
    ...(await counted(windowMs)),
    process: meter.read(),
  });
}

type Counted = Omit<MonitoringResponse, 'process'>;

async function countedOf(deps: SummaryDeps, links: Links, windowMs: number): Promise<Counted> {
  const nowMs = deps.clock.now();
  const since = windowStart(nowMs, windowMs);
  const [{ attention, ...measured }, counted, failures] = await Promise.all([
    measure(deps, windowMs, nowMs),
    deps.reads.monitoring.series(since, bucketStarts(since, nowMs, bucketMs(windowMs))),
    deps.reads.proof.recentFailures(since, LIMITS.recentFailures.max),
  ]);
  return {
    ok: measured.status === 'ok',
    attention: [...attention],
    windowMs,
    ...measured,
    ...seriesOf(counted),
    recentFailures: failures.map((proof) => proofSummary(proof, links)),
    redactionPolicy: REDACTION_POLICY,
  };
}

function seriesOf({ buckets, durationMs }: ExecutionSeries): Pick<Counted, 'series' | 'durations'> {
  return {
    series: buckets.map(({ start, ...counted }) => ({ at: `${start}:00.000Z`, ...counted })),
    durations: durationMs && { p50Ms: durationMs.p50, p95Ms: durationMs.p95 },
  };
}
