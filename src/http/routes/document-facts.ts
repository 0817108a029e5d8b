// How this deployment runs, as its documents tell it.
import type { Facts } from '#src/discovery/facts.ts';
import type { HttpDeps } from '#src/http/deps.ts';

export function documentFacts({ settings, payments, clock }: HttpDeps): Facts {
  const { mode, offer, policyMode, targetQuota, rateLimitPerMinute, maxInFlight } = settings;
  return {
    baseUrl: settings.baseUrl.replace(/\/+$/, ''),
    generatedAt: new Date(clock.now()).toISOString(),
    mode,
    offer,
    askedFor: payments?.askedFor ?? null,
    policyMode,
    targetQuota: targetQuota && { windowMs: targetQuota.windowMs, maxRequests: targetQuota.maxRequests },
    rateLimitPerMinute,
    maxInFlight,
    facilitatorTimeoutMs: settings.facilitatorTimeoutMs,
    retentionDays: settings.retentionDays,
  };
}
