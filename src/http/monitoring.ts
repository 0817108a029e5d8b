// Monitoring and trust on the wire: the read models' verdicts, and what this process knows of itself.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { LIMITS } from '#src/domain/limits.ts';
import { json } from './answer.ts';
import type { HttpDeps } from './deps.ts';
import { refusalAnswer } from './errors.ts';
import { type Links, linksFrom } from './links.ts';
import { describe } from './operation.ts';
import { type ProcessMeter, ProcessMetrics } from './process-metrics.ts';
import { ProofSummary, proofSummary, REDACTION_POLICY, RedactionPolicy } from './proofs.ts';
import { type IntegerParameter, readInteger } from './query-string.ts';
import type { MonitoringRecord } from './records.ts';
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
    '/api/monitoring/executions',
    async ({ request }) => {
      const wanted = readInteger(request.url, windowMs);
      if (typeof wanted !== 'number') return refusalAnswer(wanted);
      return json(200, responseOf(await deps.reads.monitoring(wanted), links, meter));
    },
    describe(operation),
  );
}

function responseOf(
  record: MonitoringRecord,
  links: Links,
  meter: ProcessMeter,
): typeof MonitoringResponse.static {
  const { status, windowMs, failureRate, stats, recentFailures, projection } = record;
  return {
    ok: status === 'ok',
    status,
    windowMs,
    failureRate,
    stats,
    recentFailures: recentFailures.map((proof) => proofSummary(proof, links)),
    redactionPolicy: REDACTION_POLICY,
    process: meter.read(),
    projection,
  };
}

const operation = {
  summary: 'Execution monitoring',
  description: 'Durable counters of jobs, recent failures, and the request figures of the answering process.',
  tag: 'transparency' as const,
  query: windowMs,
  answers: { 200: ['The summary.', MonitoringResponse] } as const,
  errors: { 400: 'windowMs is out of bounds.', 503: 'The read models are unavailable.' },
};
