// The trust summary on the wire: measured facts and the score made of them.

import { Type } from '@sinclair/typebox';
import { windowStart } from '#projections/monitoring/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { TRUST_WINDOW_MS, trustFacts, trustScore, trustSignals } from '#src/domain/monitoring/trust.ts';
import { Closed, Count, Instant, Nullable } from '#src/domain/schema-parts.ts';
import type { ReadsOf, Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { jsonText } from '#src/http/response/json.ts';
import { figure, type Moment } from '#src/http/response/response-cache.ts';
import { JobStats, type MeasureDeps, measure, Status } from './monitoring.ts';

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
});

export type TrustDeps = Moment &
  MeasureDeps &
  ReadsOf<'trust' | 'store'> &
  Settings<'mode' | 'offer' | 'storage'>;

export function trustRoutes(deps: TrustDeps): Endpoint[] {
  const summary = figure(deps, async (_: 'trust') => JSON.stringify(await summaryOf(deps)));
  const operation = {
    answers: { 200: ['The summary.', TrustResponse] },
    errors: { 503: 'The read models are unavailable.' },
  } as const;
  return [endpoint(ROUTES.trust, operation, async () => jsonText(await summary('trust')))];
}

async function summaryOf(deps: TrustDeps): Promise<typeof TrustResponse.static> {
  const { reads, settings } = deps;
  const { scheme, network, price } = settings.offer;
  const [{ status, stats, failureRate }, receipts, payments, counts] = await Promise.all([
    measure(deps, TRUST_WINDOW_MS),
    reads.trust.receipts(windowStart(deps.clock.now(), TRUST_WINDOW_MS)),
    reads.trust.payments(),
    reads.store.counts(),
  ]);
  const facts = trustFacts(settings, stats, receipts, deps.checkpointStanding());
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
  };
}
