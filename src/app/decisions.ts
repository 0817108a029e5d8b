// What is free: decisions, policy checks, handoffs and previews of schedules.
import { windowStart } from '#projections/monitoring/query.ts';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { TRUST_WINDOW_MS } from '#src/domain/monitoring/trust.ts';
import type { AppDeps } from '#src/http/app.ts';
import { checkPolicy } from '#src/usecases/decisions/check-policy.ts';
import { decideWebhook, marketFacts } from '#src/usecases/decisions/decide-webhook.ts';
import { handOffBrowser, previewSchedule } from '#src/usecases/planning/free-plans.ts';
import type { AppParts, Shared } from './app-parts.ts';
import { tracedResolver } from './telemetry.ts';

export function wireDecisions(
  { config, journal, keys, models, projector, checkpoints, recordIsWhole, telemetry }: AppParts,
  { targets, quota, settings }: Shared,
): AppDeps['decisions'] {
  const { log, clock, entropy, logger, ending } = journal;
  const { rules } = targets;
  // Free checks have a resolver of their own. In demo mode the payer is known: all callers are one.
  const payer = config.mode === 'demo' ? 'demo' : null;
  const targetQuotaPerMinute = config.rates.targetPerMinute;
  const judging = (client: string) => ({
    rules,
    describeAddress,
    resolver: tracedResolver(targets.freeResolverOf(client), telemetry.tracer),
    quota,
    targetQuotaPerMinute,
    payer,
    clock,
    entropy,
  });
  const { mode, storage } = settings;
  const rows = {
    jobs: (now: number) => models.monitoring.summary(now, TRUST_WINDOW_MS),
    receipts: (now: number) => models.trust.receipts(windowStart(now, TRUST_WINDOW_MS)),
  };
  const measuring = { rows, checkpointStanding: checkpoints.standing, clock, mode, storage };
  const deciding = {
    log,
    logger,
    ending,
    keyedHash: keys.keyedHash,
    recordIsWhole,
    market: () => marketFacts(measuring),
    offer: { ...settings.offer, payTo: config.x402?.payTo ?? null },
  };
  return {
    clock,
    quota,
    settings,
    progress: projector,
    reads: { decision: models.decision },
    decide: (input, client) => decideWebhook({ ...deciding, ...judging(client) }, input),
    checkPolicy: ({ request }, client) => checkPolicy(judging(client), request, payer),
    handOffBrowser: (request, client) => handOffBrowser(judging(client), request),
    async previewSchedule(request, client) {
      const { temporalCalendar } = await import('#src/adapters/calendar/temporal.ts');
      return previewSchedule({ ...judging(client), calendar: temporalCalendar() }, request);
    },
  };
}
