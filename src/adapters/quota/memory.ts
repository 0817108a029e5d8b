// Rate limits and quotas in the memory of one process: fixed windows.
import type { Quota, QuotaRule, QuotaState } from '#src/ports/quota.ts';

export type Window = {
  /** Units counted, refused ones included. */
  readonly points: number;
  /** ms until it ends. */
  readonly resetMs: number;
};

export class Windows {
  /** By rule and key, in the order in which they began; times of `performance.now()`. */
  readonly #windows = new Map<string, { readonly points: number; readonly endsAt: number }>();
  readonly #keysMax: number;

  /** `keysMax`: if there are more windows, the oldest is dropped. */
  constructor(keysMax = 50_000) {
    this.#keysMax = keysMax;
  }

  /** The open window of a key, or an empty one. */
  find(rule: QuotaRule, key: string): Window {
    const now = performance.now();
    const found = this.#windows.get(`${idOf(rule)} ${key}`);
    if (found === undefined || found.endsAt <= now) return { points: 0, resetMs: rule.windowMs };
    return { points: found.points, resetMs: found.endsAt - now };
  }

  /** Adds a unit to the open window of a key, or to a new one; returns the window after the change. */
  add(rule: QuotaRule, key: string): Window {
    const { points, resetMs } = this.find(rule, key);
    const window = { points: points + 1, resetMs };
    this.set(rule, key, window);
    return window;
  }

  /** Replaces the window of a key. */
  set(rule: QuotaRule, key: string, { points, resetMs }: Window): void {
    const id = `${idOf(rule)} ${key}`;
    const now = performance.now();
    // An open window keeps its place in the order.
    if ((this.#windows.get(id)?.endsAt ?? 0) <= now) this.#windows.delete(id);
    this.#windows.set(id, { points, endsAt: now + resetMs });
    for (const [oldest, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size <= this.#keysMax) break;
      this.#windows.delete(oldest);
    }
  }
}

/** Processes and routes with different limits share a window; each applies its own limit. */
export const idOf = ({ name, windowMs }: QuotaRule): string => `${name} ${windowMs}`;

/** `points`: including the requested unit. */
export function stateOf(
  { windowMs, maxRequests: limit }: QuotaRule,
  { points, resetMs }: Window,
): QuotaState {
  const remaining = Math.max(0, limit - points);
  return { allowed: points <= limit, limit, remaining, resetMs: Math.min(resetMs, windowMs) };
}

/** Each process counts separately. */
export function memoryQuota(options: { readonly keysMax?: number } = {}): Quota {
  const windows = new Windows(options.keysMax);
  return {
    take: async (rule, key) => stateOf(rule, windows.add(rule, key)),
    async look(rule, key) {
      const { points, resetMs } = windows.find(rule, key);
      return stateOf(rule, { points: points + 1, resetMs });
    },
  };
}
