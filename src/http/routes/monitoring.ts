// Monitoring and trust on the wire: the read models' verdicts, and what this process knows of itself.
import { Type } from '@sinclair/typebox';
import { durationsOf, type ExecutionSummary, summaryOf, windowStart } from '#projections/monitoring/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import {
  ATTENTION_REASONS,
  attentionReasons,
  type ExecutionFacts,
  executionStatus,
} from '#src/domain/monitoring/alert-rules.ts';
import {
  type CheckpointStatus,
  TRUST_WINDOW_MS,
  trustFacts,
  trustScore,
  trustSignals,
} from '#src/domain/monitoring/trust.ts';
import { type WitnessesStatus, witnessesShown } from '#src/domain/monitoring/witnesses.ts';
import { Closed, Count, Instant, Nullable, OneOf } from '#src/domain/schema-parts.ts';
import type { ProgressOf, ReadsOf, Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { ProcessFigures, type ProcessMeter } from '#src/http/request/instrumentation.ts';
import { type IntegerParameter, readInteger } from '#src/http/request/validation.ts';
import { jsonTextAnswer } from '#src/http/response/json.ts';
import { type Links, linksFrom } from '#src/http/response/links.ts';
import { figure, type Moment } from '#src/http/response/response-cache.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';
import { WitnessesShown } from './health.ts';
import { ProofSummary, proofSummary, REDACTION_POLICY, RedactionPolicy } from './proofs.ts';

export const Status = OneOf('ok', 'attention');

const AttentionReason = OneOf(...ATTENTION_REASONS);

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

/** A window in whole buckets: the one that is shown for `windowMs`. */
export function wholeWindow(windowMs: number): number {
  const size = bucketMs(windowMs);
  return Math.ceil(windowMs / size) * size;
}

/**
 * The first minute of each bucket, `YYYY-MM-DDTHH:MM`, of a whole window: from the one that holds its begin to the one that
 * holds `nowMs`. Buckets begin at multiples of their size since the Unix epoch.
 */
export function bucketStarts(nowMs: number, windowMs: number, sizeMs: number): readonly string[] {
  const last = Math.floor(nowMs / sizeMs);
  const count = windowMs / sizeMs + 1;
  return Array.from({ length: count }, (_, at) => iso((last - count + 1 + at) * sizeMs).slice(0, 16));
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
      'Finished executions of the window, oldest first: evenly spaced, each entry from its `at` to the next one’s. The window begins with the first. Durations are estimates from counted classes, 28 % off at most (below 25 ms: 25 ms); null where none is known.',
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
  windowMs: Type.Integer({
    minimum: LIMITS.monitoringWindowMs.min,
    description: 'As asked for, rounded up to whole buckets of the series.',
  }),
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
  description:
    'Milliseconds back from now; rounded up to whole buckets of the series, of 1 minute to 8 hours.',
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
      return typeof wanted === 'number' ? jsonTextAnswer(await summaries.text(wanted)) : wanted;
    }),
  ];
}

export type MeasureDeps = ReadsOf<'monitoring' | 'receipt'> &
  ProgressOf<'lag'> & {
    readonly clock: Clock;
    /** null: there is no transparency log, or it is not known yet. Never throws. */
    checkpointStanding(): CheckpointStatus | null;
  };

/** What the attention rule judges, and what of it is shown. */
export async function measure({ reads, progress, clock, checkpointStanding }: MeasureDeps, windowMs: number) {
  const [summary, unverifiedReceipts] = await Promise.all([
    reads.monitoring.summary(clock.now(), windowMs),
    reads.receipt.countUnverified(),
  ]);
  return judged(summary, { unverifiedReceipts, checkpoint: checkpointStanding() }, progress.lag());
}

function judged(
  { stats, failureRate, overdue }: ExecutionSummary,
  { unverifiedReceipts, checkpoint }: Pick<ExecutionFacts, 'unverifiedReceipts' | 'checkpoint'>,
  { lagEvents, lagMs }: ReturnType<MeasureDeps['progress']['lag']>,
) {
  const { recentSucceeded, recentFailed } = stats;
  const facts = { recentSucceeded, recentFailed, overdue, unverifiedReceipts, lagMs, checkpoint };
  return {
    status: executionStatus(facts),
    attention: attentionReasons(facts),
    stats,
    failureRate,
    projection: { lagEvents, lagMs },
  };
}

/** The same for machines and on the page for people. The figures of this process are as of now. */
export type Summaries = {
  of(windowMs: number): Promise<MonitoringResponse>;
  /** The same as JSON. */
  text(windowMs: number): Promise<string>;
};

export type SummaryDeps = Moment & MeasureDeps & ReadsOf<'proof'> & Settings<'baseUrl'>;

export function monitoringSummaries(deps: SummaryDeps, meter: ProcessMeter): Summaries {
  const links = linksFrom(deps.settings.baseUrl);
  const counted = figure(deps, (sizeMs: number) => countedIn(deps, links, sizeMs));
  const find = async (windowMs: number) => (await counted(bucketMs(windowMs)))(wholeWindow(windowMs));
  return {
    async of(windowMs) {
      return { ...(await find(windowMs)).summary, process: meter.read() };
    },
    async text(windowMs) {
      const { json } = await find(windowMs);
      return `${json.slice(0, -1)},"process":${JSON.stringify(meter.read())}}`;
    },
  };
}

type Summary = Omit<MonitoringResponse, 'process'>;
type Shown = { readonly summary: Summary; readonly json: string };

/** Counts the longest window with buckets of this size: every other one is the end of it. */
async function countedIn(
  deps: SummaryDeps,
  links: Links,
  sizeMs: number,
): Promise<(windowMs: number) => Shown> {
  const { reads, clock, progress } = deps;
  const nowMs = clock.now();
  const longest = Math.min(sizeMs * BUCKETS_MAX, LIMITS.monitoringWindowMs.max);
  const starts = bucketStarts(nowMs, longest, sizeMs);
  const [totals, unverified, buckets, failures] = await Promise.all([
    reads.monitoring.totals(nowMs),
    reads.receipt.countUnverified(),
    reads.monitoring.series(starts),
    reads.proof.recentFailures(starts[0] ?? '', LIMITS.recentFailures.max),
  ]);
  const lag = progress.lag();
  const beside = { unverifiedReceipts: unverified, checkpoint: deps.checkpointStanding() };
  const series = buckets.map((bucket) => ({
    at: `${bucket.start}:00.000Z`,
    succeeded: bucket.succeeded,
    failed: bucket.failed,
    durationMs: durationsOf([bucket]),
  }));
  const shown = new Map<number, Shown>();

  function summarize(windowMs: number): Summary {
    const count = windowMs / sizeMs + 1;
    const inWindow = buckets.slice(-count);
    const [{ start = '' } = {}] = inWindow;
    const durations = durationsOf(inWindow);
    const finished = {
      succeeded: inWindow.reduce((sum, { succeeded }) => sum + succeeded, 0),
      failed: inWindow.reduce((sum, { failed }) => sum + failed, 0),
    };
    const { attention, ...measured } = judged(summaryOf(totals, finished), beside, lag);
    return {
      ok: measured.status === 'ok',
      attention: [...attention],
      windowMs,
      ...measured,
      series: series.slice(-count),
      durations: durations && { p50Ms: durations.p50, p95Ms: durations.p95 },
      recentFailures: failures
        .filter(({ completedAt }) => completedAt >= start)
        .map((proof) => proofSummary(proof, links)),
      redactionPolicy: REDACTION_POLICY,
    };
  }

  return (windowMs) => {
    const known = shown.get(windowMs);
    if (known !== undefined) return known;
    const summary = summarize(windowMs);
    const made = { summary, json: JSON.stringify(summary) };
    shown.set(windowMs, made);
    return made;
  };
}

// ── the trust summary: measured facts and the score made of them ────────────────────────────────────

export const TrustResponse = Closed({
  ok: Type.Literal(true),
  status: Status,
  x402: Closed({
    enabled: Type.Boolean(),
    scheme: Type.String(),
    network: Type.String(),
    price: Type.String(),
  }),
  storage: Closed({ driver: Type.String(), durable: Type.Boolean(), jobs: Count, receipts: Count }),
  execution: Closed({
    windowMs: Count,
    recentFailureRate: Type.Number({ minimum: 0, maximum: 1 }),
    stats: JobStats,
  }),
  payments: Closed({ charged: Count, served: Count, refunded: Count, open: Count }),
  proofExamples: Closed({ recentVerifiedProofs: Count, latestVerifiedProofAt: Nullable(Instant) }),
  trustScore: Type.Integer({ minimum: 0, maximum: 100, description: 'Of measured facts only.' }),
  trustComponents: Type.Array(
    Closed({
      name: Type.String(),
      value: Type.Union([Type.Boolean(), Type.Number()]),
      weight: Type.Number(),
      score: Type.Number(),
    }),
  ),
  trustSignals: Type.Array(Type.String()),
  witnesses: Type.Optional(WitnessesShown),
});

export type TrustDeps = Moment &
  MeasureDeps &
  ReadsOf<'trust' | 'store'> &
  Settings<'mode' | 'offer' | 'storage'> & {
    /** null: the transparency log has none. Never throws. */
    witnesses(): WitnessesStatus | null;
  };

export function trustRoutes(deps: TrustDeps): Endpoint[] {
  const summary = figure(deps, async (_: 'trust') => JSON.stringify(await trustSummary(deps)));
  const operation = {
    answers: { 200: ['The summary.', TrustResponse] },
    errors: { 503: 'The read models are unavailable.' },
  } as const;
  return [endpoint(ROUTES.trust, operation, async () => jsonTextAnswer(await summary('trust')))];
}

async function trustSummary(deps: TrustDeps): Promise<typeof TrustResponse.static> {
  const { reads, settings } = deps;
  const { scheme, network, price } = settings.offer;
  const [{ status, stats, failureRate }, receipts, payments, counts] = await Promise.all([
    measure(deps, TRUST_WINDOW_MS),
    reads.trust.receipts(windowStart(deps.clock.now(), TRUST_WINDOW_MS)),
    reads.trust.payments(),
    reads.store.counts(),
  ]);
  const witnessed = deps.witnesses();
  const facts = trustFacts(settings, stats, receipts, deps.checkpointStanding(), witnessed);
  const { score, components } = trustScore(facts);
  return {
    ok: true,
    status,
    x402: { enabled: facts.paymentEnforced, scheme, network, price },
    storage: { ...settings.storage, jobs: counts.jobs, receipts: counts.receipts },
    execution: { windowMs: TRUST_WINDOW_MS, recentFailureRate: failureRate, stats },
    payments: { ...payments, served: Math.max(0, payments.served) },
    proofExamples: {
      recentVerifiedProofs: receipts.recentVerified,
      latestVerifiedProofAt: receipts.latestVerifiedAt,
    },
    trustScore: score,
    trustComponents: [...components],
    trustSignals: [...trustSignals(facts, settings.offer)],
    ...(witnessed === null ? {} : { witnesses: witnessesShown(witnessed) }),
  };
}
