// Fixed windows in virtual time: one for all processes of a deployment, as a shared store has them.
import type { Quota, QuotaRule, QuotaState } from '#src/ports/quota.ts';
import type { Host } from './host.ts';

export class QuotaStore {
  readonly #windows = new Map<string, { points: number; readonly endsAt: number }>();

  read(rule: QuotaRule, key: string, now: number, units: 0 | 1): QuotaState {
    const name = `${rule.name} ${rule.windowMs} ${key}`;
    const known = this.#windows.get(name);
    const window = known && known.endsAt > now ? known : { points: 0, endsAt: now + rule.windowMs };
    if (units === 1) {
      window.points++;
      this.#windows.set(name, window);
    }
    const points = window.points + 1 - units;
    const { maxRequests: limit } = rule;
    const remaining = Math.max(0, limit - points);
    return {
      allowed: points <= limit,
      limit,
      remaining,
      resetMs: Math.min(window.endsAt - now, rule.windowMs),
    };
  }
}

export function simulatedQuota(
  store: QuotaStore,
  host: Host,
  onTake: (rule: QuotaRule, key: string) => void,
): Quota {
  return {
    take: (rule, key) =>
      host.call(null, () => {
        onTake(rule, key);
        return store.read(rule, key, host.scheduler.now, 1);
      }),
    look: (rule, key) => host.call(null, () => store.read(rule, key, host.scheduler.now, 0)),
  };
}
