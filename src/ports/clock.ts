// Time and randomness, passed as arguments.
import type { AbortSignalLike } from './event-log.ts';

export interface Clock {
  /** Wall clock, ms since the Unix epoch. Only for recorded times and for dates of expiry. */
  now(): number;
  /** Monotonic clock, ms since an arbitrary start. */
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
