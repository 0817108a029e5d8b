// The trust summary on the wire: measured facts and the score made of them.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { json } from './answer.ts';
import type { HttpDeps, HttpSettings } from './deps.ts';
import { JobStats, Status } from './monitoring.ts';
import { describe } from './operation.ts';
import type { TrustRecord } from './records.ts';
import { Closed, Count, Instant, Nullable } from './schema-parts.ts';

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
  proofExamples: Closed({ recentVerifiedProofs: Count, latestVerifiedProofAt: Nullable(Instant) }),
  trustScore: Nullable(
    Type.Number({ minimum: 0, maximum: 100, description: 'Of measured facts; null where there are none.' }),
  ),
  trustComponents: Type.Array(
    Closed({ name: Type.String(), value: Type.Number(), weight: Type.Number(), score: Type.Number() }),
  ),
  trustSignals: Type.Array(Type.String()),
});

export function trustRoutes(deps: HttpDeps) {
  return new Elysia().get(
    '/api/trust',
    async () => json(200, responseOf(await deps.reads.trust(), deps.settings)),
    describe(operation),
  );
}

function responseOf(record: TrustRecord, { mode, offer }: HttpSettings): typeof TrustResponse.static {
  const { status, storage, execution, proofExamples, trustScore, trustComponents, trustSignals } = record;
  const { scheme, network, price } = offer;
  return {
    ok: true,
    status,
    x402: { enabled: mode === 'x402', scheme, network, price },
    storage,
    execution,
    proofExamples,
    trustScore,
    trustComponents: [...trustComponents],
    trustSignals: [...trustSignals],
  };
}

const operation = {
  summary: 'Trust summary',
  description: 'What a buyer can go by before paying, from measured facts only.',
  tag: 'transparency' as const,
  answers: { 200: ['The summary.', TrustResponse] } as const,
  errors: { 503: 'The read models are unavailable.' },
};
