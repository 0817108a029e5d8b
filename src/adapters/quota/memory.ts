// Fixed windows in this process's memory. It decides how often a key came; what a key is and which rule holds, its
// callers decide. Each process counts for itself.
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Quota, QuotaRule, QuotaState } from '../../ports/quota.ts';

/** Keys held for each rule. Who brings more addresses than this within a window is past counting by address. */
const DEFAULT_KEYS_MAX = 50_000;

/** The library forgets a window by a timer, and a timer that is set for longer fires at once. */
const WINDOW_MAX_MS = 24 * 86_400_000;

export function memoryQuota(options: { readonly keysMax?: number } = {}): Quota {
  const keysMax = options.keysMax ?? DEFAULT_KEYS_MAX;
  const windows = new Map<string, Windows>();
  const windowsOf = (rule: QuotaRule): Windows => {
    const id = `${rule.name} ${rule.windowMs}`;
    const known = windows.get(id);
    if (known !== undefined) return known;
    const made = countedWindows(rule.windowMs, keysMax);
    windows.set(id, made);
    return made;
  };
  return {
    take: (rule, key, units = 1) => windowsOf(rule).take(key, units, rule.maxRequests),
    look: (rule, key) => windowsOf(rule).look(key, rule.maxRequests),
  };
}

type Windows = {
  take(key: string, units: number, limit: number): Promise<QuotaState>;
  look(key: string, limit: number): Promise<QuotaState>;
};

/** The limit is no part of a window: whoever asks by another one counts in the same, and is refused at its own. */
function countedWindows(windowMs: number, keysMax: number): Windows {
  if (windowMs > WINDOW_MAX_MS) throw new RangeError('a window is at most 24 days long');
  // It only counts, and never rejects.
  const points = Number.MAX_SAFE_INTEGER;
  const limiter = new RateLimiterMemory({ points, duration: windowMs / 1000, keyPrefix: '' });
  /** Keys by the start of their window, oldest first: all windows of a rule are of one length. */
  const held = new Set<string>();

  async function makeRoom(key: string): Promise<void> {
    const open = await openWindow(limiter, key);
    if (open !== null) return;
    held.delete(key);
    held.add(key);
    if (held.size <= keysMax) return;
    for (const oldest of held) {
      held.delete(oldest);
      await limiter.delete(oldest);
      break;
    }
  }

  return {
    async take(key, units, limit) {
      await makeRoom(key);
      const counted = await limiter.consume(key, units);
      return {
        allowed: counted.consumedPoints <= limit,
        limit,
        remaining: Math.max(0, limit - counted.consumedPoints),
        resetMs: Math.max(0, counted.msBeforeNext),
      };
    },
    async look(key, limit) {
      const open = await openWindow(limiter, key);
      const after = (open?.consumedPoints ?? 0) + 1;
      return {
        allowed: after <= limit,
        limit,
        remaining: Math.max(0, limit - after),
        resetMs: open?.msBeforeNext ?? windowMs,
      };
    },
  };
}

/** null where the key has no window, or one that is over and not yet swept. */
async function openWindow(limiter: RateLimiterMemory, key: string): Promise<RateLimiterRes | null> {
  const counter = await limiter.get(key);
  return counter === null || counter.msBeforeNext <= 0 ? null : counter;
}
