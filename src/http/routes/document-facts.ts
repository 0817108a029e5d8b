// The facts of this deployment that its documents state.
import type { Facts } from '#src/discovery/facts.ts';
import type { Settings } from '#src/http/deps.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';

export type DocumentDeps = Settings<
  | 'baseUrl'
  | 'mode'
  | 'offer'
  | 'policyMode'
  | 'targetQuota'
  | 'rateLimitPerMinute'
  | 'maxInFlight'
  | 'facilitatorTimeoutMs'
  | 'retentionDays'
> & {
  /** null: nothing is charged (demo mode). */
  readonly payments: PaymentProtocol | null;
  readonly clock: Clock;
};

export function documentFacts({ settings, payments, clock }: DocumentDeps): Facts {
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
