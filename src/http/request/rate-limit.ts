// How often one client address may call the routes that cost something.
import { type Refused, refused } from '#src/domain/refusal.ts';
import type { Quota, QuotaRule, QuotaState } from '#src/ports/quota.ts';
import { countedAs } from './client-address.ts';
import type { Call } from './request-context.ts';

/** Each route counts for itself: free checks do not use up paid calls. */
export function rateRule(
  route:
    | 'execute'
    | 'policy-check'
    | 'decide'
    | 'decide-daily'
    | 'handoff'
    | 'schedule-preview'
    | 'canary'
    | 'mcp',
  maxRequests: number,
  windowMs = 60_000,
): QuotaRule {
  return { name: `client-${route}`, windowMs, maxRequests };
}

/**
 * Takes one call of each rule, in their order, up to the first that has none left. The answer, whatever it will be,
 * tells how many are left of the rule that is nearest to its end.
 */
export async function limitRate(
  quota: Quota,
  rules: readonly QuotaRule[],
  call: Call,
): Promise<Refused<'rate_limited'> | null> {
  let nearest: QuotaState | null = null;
  for (const rule of rules) {
    const state = await quota.take(rule, countedAs(call.client));
    if (!state.allowed) {
      tell(call.headers, rule, state);
      return refused('rate_limited', 'Too many calls from this address. Come again later.', {
        retryAfterSeconds: secondsToReset(state),
      });
    }
    if (nearest !== null && nearest.remaining <= state.remaining) continue;
    nearest = state;
    tell(call.headers, rule, state);
  }
  return null;
}

function tell(headers: Headers, rule: QuotaRule, state: QuotaState): void {
  headers.set('ratelimit-limit', String(state.limit));
  headers.set('ratelimit-remaining', String(Math.max(0, state.remaining)));
  headers.set('ratelimit-reset', String(secondsToReset(state)));
  headers.set('ratelimit-policy', `${state.limit};w=${rule.windowMs / 1000}`);
}

const secondsToReset = ({ resetMs }: QuotaState) => Math.max(1, Math.ceil(resetMs / 1000));
