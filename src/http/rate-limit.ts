// How many calls a minute one client address may make to the routes that cost something.
import { type Refused, refused } from '#src/domain/refusal.ts';
import type { Quota, QuotaRule } from '#src/ports/quota.ts';
import type { Call } from './call.ts';
import { countedAs } from './client-address.ts';

/** Each route counts for itself: free checks do not use up paid calls. */
export function rateRule(route: 'execute' | 'policy-check', maxRequests: number): QuotaRule {
  return { name: `client-${route}`, windowMs: 60_000, maxRequests };
}

/** Takes one call; the answer, whatever it will be, tells how many are left. */
export async function limitRate(
  quota: Quota,
  rule: QuotaRule,
  call: Call,
): Promise<Refused<'rate_limited'> | null> {
  const { allowed, limit, remaining, resetMs } = await quota.take(rule, countedAs(call.client));
  const resetSeconds = Math.max(1, Math.ceil(resetMs / 1000));
  call.headers.set('ratelimit-limit', String(limit));
  call.headers.set('ratelimit-remaining', String(Math.max(0, remaining)));
  call.headers.set('ratelimit-reset', String(resetSeconds));
  call.headers.set('ratelimit-policy', `${limit};w=${rule.windowMs / 1000}`);
  if (allowed) return null;
  return refused('rate_limited', 'Too many calls from this address. Come again later.', {
    retryAfterSeconds: resetSeconds,
  });
}
