// Rate limits and quotas in the memory of one process: fixed windows.
import type { Quota, QuotaRule, QuotaState } from '#src/ports/quota.ts';

export type Window = {
  /** Units counted, refused ones included. */
  readonly points: number;
  /** ms until it ends. */
  readonly resetMs: number;
};

/** The windows of one rule have one length, so its map is ordered by their end as well as by their start. */
type StoredWindow = { points: number; endsAt: number };

export class Windows {
  readonly #rules = new Map<string, Map<string, StoredWindow>>();
  readonly #keysMax: number;

  /** `keysMax`: windows per rule; if there are more, the oldest is dropped. */
  constructor(keysMax = 50_000) {
    this.#keysMax = keysMax;
  }

  /** Number of windows, including ended ones that are not yet dropped. */
  get size(): number {
    return [...this.#rules.values()].reduce((sum, held) => sum + held.size, 0);
  }

  /** The open window of a key, or an empty one. */
  find(rule: QuotaRule, key: string): Window {
    const now = performance.now();
    const found = this.#rules.get(idOf(rule))?.get(key);
    if (found === undefined || found.endsAt <= now) return { points: 0, resetMs: rule.windowMs };
    return { points: found.points, resetMs: found.endsAt - now };
  }

  /** Adds units to the open window of a key, or to a new one; returns the window after the change. */
  add(rule: QuotaRule, key: string, units: number): Window {
    const { points, resetMs } = this.find(rule, key);
    const window = { points: Math.max(0, points + units), resetMs };
    if (window.points > 0 || points > 0) this.set(rule, key, window);
    return window;
  }

  /** Replaces the window of a key. */
  set(rule: QuotaRule, key: string, { points, resetMs }: Window): void {
    const id = idOf(rule);
    const held = this.#rules.get(id) ?? new Map<string, StoredWindow>();
    this.#rules.set(id, held);
    const now = performance.now();
    const window = held.get(key);
    if (window !== undefined && window.endsAt > now) {
      Object.assign(window, { points, endsAt: now + resetMs });
      return;
    }
    held.delete(key);
    held.set(key, { points, endsAt: now + resetMs });
    for (const [oldest, { endsAt }] of held) {
      if (endsAt > now && held.size <= this.#keysMax) break;
      held.delete(oldest);
    }
  }
}

/** Processes and routes with different limits share a window; each applies its own limit. */
const idOf = ({ name, windowMs }: QuotaRule): string => `${name} ${windowMs}`;

/** `points`: including the requested units. */
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
    async take(rule, key, units = 1) {
      return stateOf(rule, windows.add(rule, key, units));
    },
    async look(rule, key) {
      const { points, resetMs } = windows.find(rule, key);
      return stateOf(rule, { points: points + 1, resetMs });
    },
    async giveBack(rule, key, units = 1) {
      windows.add(rule, key, -units);
    },
  };
}
