// Time and chance from the machine. What they decide is left to those who ask.
import { randomBytes, randomUUID } from 'node:crypto';
import { sleep } from '#src/lib/time.ts';
import type { Clock, Entropy } from '../../ports/clock.ts';

export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    sleep: (ms, signal) => (signal === undefined ? sleep(ms) : sleep(ms, signal)),
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
