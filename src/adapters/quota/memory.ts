// Rate limits and quotas in the memory of one process: fixed windows.
import type { Quota, QuotaRule, QuotaState } from '#src/ports/quota.ts';

export type QuotaWindow = {
  /** Units counted, refused ones included. */
  readonly points: number;
  /** ms until it ends. */
  readonly resetMs: number;
};

type StoredWindow = { readonly points: number; readonly endsAt: number };

export class Windows {
  /** Per rule, whose windows have one length: ordered by their end as well as by their start. */
  readonly #rules = new Map<string, Map<string, StoredWindow>>();
  readonly #keysMax: number;
  readonly #now: () => number;

  /** `keysMax`: windows per rule; if there are more, the oldest is dropped. */
  constructor(keysMax = 50_000, now: () => number = () => performance.now()) {
    this.#keysMax = keysMax;
    this.#now = now;
  }

  /** The open window of a key, or an empty one. */
  find(rule: QuotaRule, key: string): QuotaWindow {
    const now = this.#now();
    const found = this.#rules.get(idOf(rule))?.get(key);
    if (found === undefined || found.endsAt <= now) return { points: 0, resetMs: rule.windowMs };
    return { points: found.points, resetMs: found.endsAt - now };
  }

  /** Adds a unit to the open window of a key, or to a new one; returns the window after the change. */
  add(rule: QuotaRule, key: string): QuotaWindow {
    const { points, resetMs } = this.find(rule, key);
    const window = { points: points + 1, resetMs };
    this.set(rule, key, window);
    return window;
  }

  set(rule: QuotaRule, key: string, { points, resetMs }: QuotaWindow): void {
    const windows = this.#rules.get(idOf(rule)) ?? new Map<string, StoredWindow>();
    this.#rules.set(idOf(rule), windows);
    const now = this.#now();
    // An open window keeps its place in the order.
    if ((windows.get(key)?.endsAt ?? 0) <= now) windows.delete(key);
    windows.set(key, { points, endsAt: now + resetMs });
    for (const [oldest, { endsAt }] of windows) {
      if (endsAt > now && windows.size <= this.#keysMax) break;
      windows.delete(oldest);
    }
  }
}

/** Processes and routes with different limits share a window; each applies its own limit. */
export const idOf = ({ name, windowMs }: QuotaRule): string => `${name} ${windowMs}`;

/** `points`: including the requested unit. */
export function stateOf(
  { windowMs, maxRequests: limit }: QuotaRule,
  { points, resetMs }: QuotaWindow,
): QuotaState {
  const remaining = Math.max(0, limit - points);
  return { allowed: points <= limit, limit, remaining, resetMs: Math.min(resetMs, windowMs) };
}

/** What taking a unit would come to. */
export function lookAt(windows: Windows, rule: QuotaRule, key: string): QuotaState {
  const { points, resetMs } = windows.find(rule, key);
  return stateOf(rule, { points: points + 1, resetMs });
}

/** Each process counts separately. */
export function memoryQuota(options: { readonly keysMax?: number } = {}): Quota {
  const windows = new Windows(options.keysMax);
  return {
    take: async (rule, key) => stateOf(rule, windows.add(rule, key)),
    look: async (rule, key) => lookAt(windows, rule, key),
  };
}
