// Pauses between attempts.
import { clearTimeout, setTimeout } from 'node:timers';
import type { AbortSignalLike } from '../../ports/event-log.ts';

const FIRST_MS = 50;
const LONGEST_MS = 1000;

/** Doubles with each failure, and is drawn at random from its upper half: many that lost one server come back apart. */
export function growingPause(failures: number): number {
  const ms = Math.min(LONGEST_MS, FIRST_MS * 2 ** failures);
  return ms * (0.5 + Math.random() / 2);
}

/** Ends early when one of the signals aborts. */
export function abortablePause(ms: number, signals: readonly AbortSignalLike[]): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    for (const signal of signals) {
      if (signal.aborted) return done();
      signal.addEventListener('abort', done, { once: true });
    }
  });
}

/** The promise's outcome, or null as soon as `signal` aborts; a later outcome is let go. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignalLike): Promise<T | null> {
  let aborted = () => {};
  const abort = new Promise<null>((resolve) => {
    aborted = () => resolve(null);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, { once: true });
  });
  try {
    return await Promise.race([promise, abort]);
  } finally {
    signal.removeEventListener('abort', aborted);
  }
}
