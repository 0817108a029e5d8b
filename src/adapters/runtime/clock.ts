// Time and chance from the machine. What they decide is left to those who ask.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock, Entropy } from '../../ports/clock.ts';

/** The longest wait that a runtime's timer can hold; beyond it a timer fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    sleep(ms, signal) {
      return new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const end = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', end);
          resolve();
        };
        const timer = setTimeout(end, Math.min(Math.max(0, ms), TIMER_MAX_MS));
        signal?.addEventListener('abort', end, { once: true });
      });
    },
  };
}

export function systemEntropy(): Entropy {
  return {
    bytes: (count) => new Uint8Array(randomBytes(count)),
    uuid: () => randomUUID(),
    // 48 bits: exact in a double, and never 1
    fraction: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
  };
}
