// Token buckets: so many units a second for each key, and some at once. An unused bucket takes no memory.
import { deleteOldest } from './delete-oldest.ts';

export type BucketRule = {
  readonly perSecond: number;
  /** Units that a full bucket holds. */
  readonly burst: number;
};

export type Taken = {
  readonly allowed: boolean;
  /** Units left now. */
  readonly remaining: number;
  /** ms until the unit may be used, or until one could be taken if it is not allowed. */
  readonly waitMs: number;
  /** ms until the bucket is full. */
  readonly fullMs: number;
};

export class TokenBuckets {
  /** Monotonic ms at which a bucket is full again (the generic cell rate algorithm's theoretical arrival time). */
  readonly #fullAt = new Map<string, number>();
  readonly #clock: { monotonic(): number };
  readonly #unitMs: number;
  readonly #burstMs: number;
  readonly #keysMax: number;

  /** `keysMax`: buckets remembered; beyond it the one that was used least recently is forgotten, and is full again. */
  constructor(clock: { monotonic(): number }, { perSecond, burst }: BucketRule, keysMax = 50_000) {
    this.#clock = clock;
    this.#unitMs = 1000 / perSecond;
    this.#burstMs = burst * this.#unitMs;
    this.#keysMax = keysMax;
  }

  /** Takes a unit if there is one within `maxWaitMs`, and else nothing. */
  take(key: string, maxWaitMs = 0): Taken {
    const now = this.#clock.monotonic();
    const before = Math.max(now, this.#fullAt.get(key) ?? now);
    const after = before + this.#unitMs;
    const waitMs = Math.max(0, after - now - this.#burstMs);
    if (waitMs > maxWaitMs) return { allowed: false, remaining: 0, waitMs, fullMs: before - now };
    this.#fullAt.delete(key);
    this.#fullAt.set(key, after);
    this.#forget(now);
    const remaining = Math.max(0, Math.floor((this.#burstMs - (after - now)) / this.#unitMs));
    return { allowed: true, remaining, waitMs, fullMs: after - now };
  }

  get size(): number {
    return this.#fullAt.size;
  }

  #forget(now: number): void {
    for (const [, fullAt] of this.#fullAt) {
      if (fullAt > now && this.#fullAt.size <= this.#keysMax) return;
      deleteOldest(this.#fullAt);
    }
  }
}
