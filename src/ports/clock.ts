// Time and chance, as arguments of everything that needs them.
import type { AbortSignalLike } from './event-log.ts';

export interface Clock {
  /** Wall clock, ms since the Unix epoch. Decides nothing but what is written down and what expires by date. */
  now(): number;
  /** Never goes back; ms from an arbitrary start. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts. */
  sleep(ms: number, signal?: AbortSignalLike): Promise<void>;
}

export interface Entropy {
  /** Cryptographically random bytes. */
  bytes(count: number): Uint8Array;
  uuid(): string;
  /** Uniform in [0, 1). */
  fraction(): number;
}
