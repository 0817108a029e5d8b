// Chance under a seed: the same seed draws the same numbers in the same order (mulberry32).
import type { Entropy } from '#src/ports/clock.ts';

export class Random implements Entropy {
  #state: number;

  constructor(seed = 1) {
    this.#state = seed >>> 0;
    // Seeds that follow each other begin with unlike numbers.
    for (let i = 0; i < 4; i++) this.next();
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    const state = this.#state;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** true with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Uniform, both ends included, whole numbers. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  /** One of the names, by their weights. */
  weighted<N extends string>(weights: Readonly<Record<N, number>>): N {
    const entries = Object.entries(weights) as [N, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    throw new Error('there is no weight');
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => Math.floor(this.next() * 256));
  }

  fraction(): number {
    return this.next();
  }

  uuid(): string {
    const hex = Buffer.from(this.bytes(16)).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  /** Another stream of numbers, which later draws of this one do not change. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 2 ** 32));
  }
}
