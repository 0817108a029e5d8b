// Loaded before the service (bun --preload): counts what lives in the process and steps its wall clock on SIGUSR2. Writes
// one JSON line every few seconds to the file SOAK_PROBE.

import { heapStats } from 'bun:jsc';
import { appendFileSync, readdirSync } from 'node:fs';
import process from 'node:process';

export type Sample = {
  /** Unix ms, of the real clock. */
  readonly at: number;
  /** Bytes. */
  readonly rss: number;
  readonly heap: number;
  /** Live objects of the heap after a full collection. */
  readonly objects: number;
  readonly promises: number;
  /** Listeners on abort signals that are still reachable. */
  readonly abortListeners: number;
  readonly descriptors: number;
};

const EVERY_MS = 5000;
const file = process.env.SOAK_PROBE ?? '';
const realNow = Date.now;

let abortListeners = 0;
const counts = new WeakMap<object, { live: number }>();
const gone = new FinalizationRegistry<{ live: number }>((count) => {
  abortListeners -= count.live;
});

function countAbortListeners(): void {
  const prototype = EventTarget.prototype;
  const { addEventListener, removeEventListener } = prototype;
  const known = new WeakMap<object, Set<unknown>>();
  prototype.addEventListener = function (this: EventTarget, type: string, listener: never, options?: never) {
    if (this instanceof AbortSignal && type === 'abort') {
      const set = known.get(this) ?? new Set();
      if (!known.has(this)) {
        const count = { live: 0 };
        known.set(this, set);
        counts.set(this, count);
        gone.register(this, count);
      }
      if (!set.has(listener)) add(this, 1);
      set.add(listener);
    }
    return addEventListener.call(this, type, listener, options);
  };
  prototype.removeEventListener = function (
    this: EventTarget,
    type: string,
    listener: never,
    options?: never,
  ) {
    if (this instanceof AbortSignal && type === 'abort' && known.get(this)?.delete(listener)) add(this, -1);
    return removeEventListener.call(this, type, listener, options);
  };
}

function add(signal: object, change: 1 | -1): void {
  const count = counts.get(signal);
  if (count === undefined) return;
  count.live += change;
  abortListeners += change;
}

/** The service believes another time, as after a step of the machine's clock; timers run on. */
function stepClockOnSignal(): void {
  let stepMs = 0;
  const RealDate = Date;
  class SteppedDate extends RealDate {
    constructor(...given: unknown[]) {
      super(...((given.length === 0 ? [realNow() + stepMs] : given) as []));
    }
    static override now(): number {
      return realNow() + stepMs;
    }
  }
  globalThis.Date = SteppedDate as DateConstructor;
  process.on('SIGUSR2', () => {
    stepMs = stepMs === 0 ? Number(process.env.SOAK_STEP_MS ?? '0') : 0;
  });
}

function look(): Sample {
  Bun.gc(true);
  const { heapSize, objectCount, objectTypeCounts } = heapStats();
  return {
    at: realNow(),
    rss: process.memoryUsage.rss(),
    heap: heapSize,
    objects: objectCount,
    promises: objectTypeCounts.Promise ?? 0,
    abortListeners,
    descriptors: readdirSync('/proc/self/fd').length,
  };
}

if (file !== '') {
  countAbortListeners();
  stepClockOnSignal();
  setInterval(() => appendFileSync(file, `${JSON.stringify(look())}\n`), EVERY_MS).unref();
}
