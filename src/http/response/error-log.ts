// What the operator's log is told of requests that failed by no fault of their callers.
import { Fault } from '#src/domain/refusal.ts';
import type { HttpDeps } from '#src/http/deps.ts';

/** An outage fails thousands of requests for one cause. */
const CAUSE_EVERY_MS = 60_000;

/** Their adapter tells the operator what is wrong, without a payer's words. */
const CAUSES_TOLD_ELSEWHERE: ReadonlySet<string> = new Set([
  'payment_unconfirmed',
  'facilitator_unavailable',
]);

/**
 * A foreseen fault is one line by its code, its cause with the first of a minute; all else is told whole. `words`: of
 * the line, where the request was served all the same.
 */
export function failureLog(
  { logger, clock }: Pick<HttpDeps, 'logger' | 'clock'>,
  words = 'a request could not be served now',
) {
  const toldAt = new Map<string, number>();
  return (requestId: string, error: unknown): void => {
    if (!(error instanceof Fault)) {
      logger.error('a request failed', { requestId, code: 'internal_error', cause: error });
      return;
    }
    const { code, cause } = error;
    const now = clock.monotonic();
    const isNews =
      !CAUSES_TOLD_ELSEWHERE.has(code) &&
      now - (toldAt.get(code) ?? Number.NEGATIVE_INFINITY) >= CAUSE_EVERY_MS;
    if (isNews) toldAt.set(code, now);
    logger.warn(words, {
      requestId,
      code,
      ...(isNews && { cause: cause ?? error }),
    });
  };
}
