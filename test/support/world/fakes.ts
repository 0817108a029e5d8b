// The ports as a test drives them: time moves only when the test advances it, randomness is seeded, and the world answers
// as scripted.
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { AttemptReport, Outbound, OutboundRequest } from '#src/ports/outbound.ts';
import { loggerOver } from '#src/usecases/process/condition.ts';
import { T0 } from '#test/support/given/given-events.ts';

/** Where a fake says what it was asked to do, in order. */
export type Trace = { push(step: string): unknown };

export type ManualClock = Clock & {
  /** Moves both clocks and wakes who slept until then, in order of their times. */
  advance(ms: number): void;
  /** Moves the wall clock alone: skew, or somebody set it. */
  skew(ms: number): void;
  /** Moves to the earliest sleeper's time; false if no one sleeps. */
  advanceToNext(): boolean;
  /** Lengths of all sleeps ever asked for. */
  readonly slept: readonly number[];
};

export function manualClock(start = T0): ManualClock {
  let mono = 0;
  let wall = start;
  const slept: number[] = [];
  const sleepers = new Set<{ readonly until: number; readonly wake: () => void }>();
  const advance = (ms: number) => {
    mono += ms;
    wall += ms;
    const due = [...sleepers].filter(({ until }) => until <= mono).sort((a, b) => a.until - b.until);
    for (const sleeper of due) {
      sleepers.delete(sleeper);
      sleeper.wake();
    }
  };
  return {
    now: () => wall,
    monotonic: () => mono,
    sleep(ms: number, signal?: AbortSignalLike) {
      slept.push(ms);
      return new Promise<void>((wake) => {
        if (signal?.aborted) return wake();
        const sleeper = { until: mono + ms, wake };
        sleepers.add(sleeper);
        const rouse = () => {
          sleepers.delete(sleeper);
          wake();
        };
        signal?.addEventListener('abort', rouse, { once: true });
      });
    },
    advance,
    skew: (ms) => {
      wall += ms;
    },
    advanceToNext() {
      const next = Math.min(...[...sleepers].map(({ until }) => until));
      if (!Number.isFinite(next)) return false;
      advance(Math.max(0, next - mono));
      return true;
    },
    slept,
  };
}

/** Lets everything run that needs no time to pass. */
export async function quiet(): Promise<void> {
  for (let i = 0; i < 3; i++) await setImmediate();
}

/** Lets time pass, sleeper by sleeper, until the promise is settled. */
export async function letPass<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let settled = false;
  const end = () => {
    settled = true;
  };
  promise.then(end, end);
  for (await quiet(); !settled; await quiet()) {
    if (!clock.advanceToNext()) throw new Error('it waits for something that no time brings');
  }
  return promise;
}

export type CollectingLogger = Logger & {
  readonly lines: readonly { readonly level: string; readonly message: string; readonly fields: unknown }[];
};

export function collectingLogger(): CollectingLogger {
  const lines: { level: string; message: string; fields: unknown }[] = [];
  const at = (level: string) => (message: string, fields?: unknown) => {
    lines.push({ level, message, fields });
  };
  const written = { info: at('info'), warn: at('warn'), error: at('error'), bug: at('bug') };
  return { ...loggerOver(written, { now: () => T0 }), lines };
}

const answered: AttemptReport = {
  phase: 'body',
  sent: 'yes',
  status: 200,
  errorCategory: null,
  reason: null,
  timings: { dnsMs: 1, connectMs: 2, tlsMs: 3, ttfbMs: 4, totalMs: 10 },
  tlsVersion: 'TLSv1.3',
  exempted: false,
  address: '203.0.113.7',
  leafSha256: 'a'.repeat(64),
  responseBytes: 2,
  responseBodySha256: 'b'.repeat(64),
  truncated: false,
  retryAfterMs: null,
  abort: false,
  response: null,
};

export const succeeding = (changes: Partial<AttemptReport> = {}): AttemptReport => ({
  ...answered,
  ...changes,
});
export const failing = (changes: Partial<AttemptReport> = {}): AttemptReport =>
  succeeding({ status: 503, errorCategory: 'target_server_error', reason: 'http_status', ...changes });

export type ScriptedOutbound = Outbound & {
  readonly sent: readonly OutboundRequest[];
  /** What the next sends answer, in order; then 200. A function may look at the world, or wait. */
  script(...answers: readonly (AttemptReport | (() => AttemptReport | Promise<AttemptReport>))[]): void;
};

/** `trace`: gets `send` for each request. */
export function scriptedOutbound(trace: Trace = []): ScriptedOutbound {
  const sent: OutboundRequest[] = [];
  const answers: (AttemptReport | (() => AttemptReport | Promise<AttemptReport>))[] = [];
  return {
    sent,
    script: (...more) => {
      answers.push(...more);
    },
    async send(request) {
      sent.push(request);
      trace.push('send');
      const answer = answers.shift() ?? succeeding();
      return typeof answer === 'function' ? answer() : answer;
    },
  };
}
