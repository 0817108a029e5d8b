// Whether a failed attempt is followed by another, and after which wait.
import type { ErrorCategory } from '../event-fields.ts';
import { LIMITS } from '../limits.ts';

export type AttemptOutcome = {
  readonly errorCategory: ErrorCategory | null;
  readonly status: number | null;
  readonly retryAfterMs: number | null;
  /** The target requested no further attempts. */
  readonly abort: boolean;
};

export type RetryFacts = {
  /** 1 for the first. */
  readonly attempt: number;
  readonly attemptsAllowed: number;
  readonly backoffMs: number;
  /** Uniform in [0, 1). */
  readonly dice: number;
};

/** `waitMs`: whole ms before the next attempt; null where there is none. */
export type RetryPlan =
  | { readonly willRetry: true; readonly waitMs: number }
  | { readonly willRetry: false; readonly waitMs: null };

const STOP: RetryPlan = { willRetry: false, waitMs: null };
/** Failures that may pass by themselves, where no status came. */
export const RETRIED_CATEGORIES: readonly ErrorCategory[] = [
  'dns_error',
  'connect_error',
  'timeout',
  'truncated_response',
];
/** Statuses of the target that may pass by themselves. */
export const RETRIED_STATUSES: readonly number[] = [408, 425, 429, 500, 502, 503, 504];

/** Full jitter; a Retry-After is the least wait, and one longer than the longest wait ends the job. */
export function planRetry(outcome: AttemptOutcome, facts: RetryFacts): RetryPlan {
  if (outcome.abort || facts.attempt >= facts.attemptsAllowed || !isPassing(outcome)) return STOP;
  const longest = LIMITS.retryWaitMs.max;
  const atLeast = outcome.retryAfterMs ?? 0;
  if (atLeast > longest) return STOP;
  const ceiling = Math.min(longest, facts.backoffMs * 2 ** (facts.attempt - 1));
  return { willRetry: true, waitMs: Math.max(Math.ceil(atLeast), Math.floor(facts.dice * ceiling)) };
}

/** In ms. A Retry-After may require the longest wait, whatever `backoffMs` is. */
export function longestRunMs(attempts: number, timeoutMs: number): number {
  return attempts * timeoutMs + (attempts - 1) * LIMITS.retryWaitMs.max;
}

/** A failure that may be temporary. A known status outweighs how its body ended. */
function isPassing({ errorCategory, status }: AttemptOutcome): boolean {
  if (errorCategory === null) return false;
  if (status !== null && !isSuccess(status)) return RETRIED_STATUSES.includes(status);
  return RETRIED_CATEGORIES.includes(errorCategory);
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

/** null: success. A final status outside 200 to 599 is not a valid HTTP status. */
export function categoryOfStatus(status: number): ErrorCategory | null {
  if (isSuccess(status)) return null;
  if (status === 429) return 'target_rate_limited';
  if (status >= 300 && status <= 399) return 'target_redirect';
  if (status >= 400 && status <= 499) return 'target_client_error';
  if (status >= 500 && status <= 599) return 'target_server_error';
  return 'protocol_error';
}

/** IMF-fixdate, the only form that senders generate (RFC 9110 §5.6.7). */
const HTTP_DATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT$/;

/** Whole ms from `nowMs`, not under 0; null where absent or unreadable. */
export function retryAfterMs(text: string | null, nowMs: number): number | null {
  const value = text?.trim() ?? '';
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, Number.MAX_SAFE_INTEGER);
  const date = HTTP_DATE.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, Math.ceil(date - nowMs));
}
