// The state of one attempt while it runs, and its report.
import type { ErrorCategory, Timings } from '../../domain/event-fields.ts';
import type { FailureReason } from '../../domain/failure-reasons.ts';
import type { AttemptReport, TargetResponse } from '../../ports/outbound.ts';
import type { BodyCopy } from './body-copy.ts';
import type { BodyHash } from './body-hash.ts';

/** The attempt ended without a complete response. */
export class AttemptFailed extends Error {
  readonly category: ErrorCategory;
  readonly reason: FailureReason;
  constructor(category: ErrorCategory, reason: FailureReason, cause?: unknown) {
    super(`${category}: ${reason}`, { cause });
    this.name = 'AttemptFailed';
    this.category = category;
    this.reason = reason;
  }
}

export type AttemptFailure = Pick<AttemptFailed, 'category' | 'reason'>;

export const invalidResponse = (reason: FailureReason = 'malformed_response') =>
  new AttemptFailed('protocol_error', reason);
export const timedOut = () => new AttemptFailed('timeout', 'timed_out');
export const notPermitted = () => new AttemptFailed('target_refused', 'not_permitted');

/** An error of the language, which no network and no peer causes. */
export const isLanguageError = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * `sent` is `no` until the request is written to the connection; then `maybe`, because it is unknown whether it arrived;
 * `yes` once a well-formed response head has arrived, an interim one (1xx) included.
 */
export type Attempt = Mutable<
  Omit<
    AttemptReport,
    'errorCategory' | 'reason' | 'timings' | 'responseBytes' | 'responseBodySha256' | 'response'
  >
> & {
  timings: Mutable<Omit<Timings, 'totalMs'>>;
  /** Of the response's body, so far; null until a response head has arrived. */
  body: BodyHash | null;
  /** Of the response, for its caller; null: none is kept. */
  kept: (Pick<TargetResponse, 'status' | 'headers'> & { readonly body: BodyCopy }) | null;
  /** ms since the last call, or since the start. */
  lap(): number;
  /** ms since the start. */
  total(): number;
  /** Whether nothing that arrives is read any more. */
  isOver(): boolean;
};

/** An answer that arrived while the thread was busy counts; one that is read later than this after the limit does not. */
const LATE_MS = 50;

export function newAttempt(monotonic: () => number, timeoutMs: number): Attempt {
  const start = monotonic();
  let last = start;
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
    kept: null,
    truncated: false,
    retryAfterMs: null,
    abort: false,
    lap() {
      const before = last;
      last = monotonic();
      return rounded(last - before);
    },
    total: () => rounded(monotonic() - start),
    isOver: () => monotonic() - start > timeoutMs + LATE_MS,
  };
}

function rounded(ms: number): number {
  return Math.max(0, Math.round(ms * 100) / 100);
}

/** `failure` null: a complete 2xx response. */
export function reportOf(attempt: Attempt, failure: AttemptFailure | null): AttemptReport {
  const { body, kept, timings, lap, total, isOver, ...known } = attempt;
  return {
    ...known,
    errorCategory: failure?.category ?? null,
    reason: failure?.reason ?? null,
    timings: { ...timings, totalMs: total() },
    responseBytes: body?.bytes ?? null,
    responseBodySha256: body?.digest() ?? null,
    response: kept && { ...kept, body: kept.body.bytes(), truncated: known.truncated },
  };
}
