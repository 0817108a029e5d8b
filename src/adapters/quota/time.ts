// Waiting with an end.
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';

/** Throws after `limitMs`. An answer that has come by then, while this thread was busy, still counts. */
export async function inTime<T>(answer: Promise<T>, limitMs: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const tooLate = () => late.reject(new Error(`no answer within ${limitMs} ms`));
  const timer = setTimeout(() => setImmediate(tooLate), limitMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves after `ms`, or at once when `ending` aborts. Keeps no process alive. */
export function pause(ms: number, ending: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (ending.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      ending.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    ending.addEventListener('abort', end, { once: true });
  });
}
