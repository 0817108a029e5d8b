// Monitoring and trust on the wire: the read models' verdicts, and what this process knows of itself.

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { windowStart } from '#projections/monitoring/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { executionStatus } from '#src/domain/attention.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { json } from './answer.ts';
import type { HttpDeps } from './deps.ts';
import { refusalAnswer } from './errors.ts';
import { type Links, linksFrom } from './links.ts';
import { describe } from './operation.ts';
import { type ProcessMeter, ProcessMetrics } from './process-metrics.ts';
import { ProofSummary, proofSummary, REDACTION_POLICY, RedactionPolicy } from './proofs.ts';
import { type IntegerParameter, readInteger } from './query-string.ts';
import { Closed, Count, Instant, Nullable } from './schema-parts.ts';

export const Status = Type.Union([Type.Literal('ok'), Type.Literal('attention')]);

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

export const MonitoringResponse = Closed({
  ok: Type.Boolean(),
  status: Status,
  windowMs: Type.Integer({ minimum: LIMITS.monitoringWindowMs.min }),
  failureRate: Type.Number({ minimum: 0, maximum: 1 }),
  stats: JobStats,
  recentFailures: Type.Array(ProofSummary),
  redactionPolicy: RedactionPolicy,
  process: ProcessMetrics,
  projection: Closed({ lagEvents: Nullable(Count), lagMs: Type.Number({ minimum: 0 }) }),
});

const windowMs: IntegerParameter = {
  name: 'windowMs',
  ...LIMITS.monitoringWindowMs,
  description: 'Milliseconds back from now; counted in whole minutes.',
};

export function monitoringRoutes(deps: HttpDeps, meter: ProcessMeter) {
  const links = linksFrom(deps.settings.baseUrl);
  return new Elysia().get(
    ROUTES.monitoring.path,
    async ({ request }) => {
      const wanted = readInteger(request.url, windowMs);
      if (typeof wanted !== 'number') return refusalAnswer(wanted);
      return json(200, await summaryOf(deps, wanted, links, meter.read()));
    },
    describe(ROUTES.monitoring, operation),
  );
}

/** What the attention rule judges, and what of it is shown. */
export async function measure({ reads, progress, clock }: HttpDeps, windowMs: number) {
  const [{ stats, failureRate, overdue }, unverifiedReceipts] = await Promise.all([
    reads.monitoring.summary(clock.now(), windowMs),
    reads.receipt.countUnverified(),
  ]);
  const { lagEvents, lagMs } = progress.lag();
  const { recentSucceeded, recentFailed } = stats;
  const status = executionStatus({ recentSucceeded, recentFailed, overdue, unverifiedReceipts, lagMs });
  return { status, stats, failureRate, projection: { lagEvents, lagMs } };
}

async function summaryOf(
  deps: HttpDeps,
  windowMs: number,
  links: Links,
  process: ProcessMetrics,
): Promise<typeof MonitoringResponse.static> {
  const since = windowStart(deps.clock.now(), windowMs);
  const [{ status, stats, failureRate, projection }, failures] = await Promise.all([
    measure(deps, windowMs),
    deps.reads.proof.recentFailures(since, LIMITS.recentFailures),
  ]);
  return {
    ok: status === 'ok',
    status,
    windowMs,
    failureRate,
    stats,
    recentFailures: failures.map((proof) => proofSummary(proof, links)),
    redactionPolicy: REDACTION_POLICY,
    process,
    projection,
  };
}

const operation = {
  query: windowMs,
  answers: { 200: ['The summary.', MonitoringResponse] } as const,
  errors: { 400: 'windowMs is out of bounds.', 503: 'The read models are unavailable.' },
};
