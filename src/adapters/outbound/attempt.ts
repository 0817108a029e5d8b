// The state of one attempt while it runs, and its report.
import type { Hash } from 'node:crypto';
import type { ErrorCategory, Timings } from '../../domain/event-fields.ts';
import type { AttemptReport } from '../../ports/outbound.ts';

/** The attempt ended without a complete response. */
export class AttemptFailed extends Error {
  readonly category: ErrorCategory;
  constructor(category: ErrorCategory, cause?: unknown) {
    super(category, { cause });
    this.name = 'AttemptFailed';
    this.category = category;
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * `sent` is `no` until the request is written to the connection; then `maybe`, because it is unknown whether it arrived;
 * `yes` once a well-formed response head has arrived, an interim one (1xx) included.
 */
export type Attempt = Mutable<
  Omit<AttemptReport, 'errorCategory' | 'timings' | 'responseBytes' | 'responseBodySha256'>
> & {
  timings: Mutable<Omit<Timings, 'totalMs'>>;
  /** Of the response's body, so far; null until a response head has arrived. */
  body: { readonly hash: Hash; bytes: number } | null;
};

export function newAttempt(): Attempt {
  return {
    phase: 'dns',
    sent: 'no',
    status: null,
    timings: { dnsMs: null, connectMs: null, tlsMs: null, ttfbMs: null },
    tlsVersion: null,
    exempted: false,
    address: null,
    leafSha256: null,
    body: null,
    truncated: false,
    retryAfterMs: null,
    abort: false,
  };
}

/** `lap()` returns the ms since the last lap, `total()` those since the start. */
export type Stopwatch = { lap(): number; total(): number };

export function startStopwatch(monotonic: () => number): Stopwatch {
  const start = monotonic();
  let last = start;
  return {
    lap() {
      const now = monotonic();
      const ms = now - last;
      last = now;
      return rounded(ms);
    },
    total: () => rounded(monotonic() - start),
  };
}

function rounded(ms: number): number {
  return Math.max(0, Math.round(ms * 100) / 100);
}

export function reportOf(
  attempt: Attempt,
  errorCategory: ErrorCategory | null,
  totalMs: number,
): AttemptReport {
  const { body, timings, ...known } = attempt;
  return {
    ...known,
    errorCategory,
    timings: { ...timings, totalMs },
    responseBytes: body?.bytes ?? null,
    responseBodySha256: body?.hash.digest('hex') ?? null,
  };
}
