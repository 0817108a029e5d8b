// What calls of the facilitator showed of it: for the log, and for health, which must not say "ok" while every paid call
// fails.

import type { FacilitatorProblem } from '#src/domain/monitoring/health.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ExchangeAnswer, ExchangeFailure } from './exchange.ts';

type Operation = 'verify' | 'settle' | 'supported';

/** `cause`: a code for the log. `problem` null: the facilitator answered, and states a failure of its own. */
export type Unusable = { readonly problem: FacilitatorProblem | null; readonly cause: string };

export type FacilitatorWatch = {
  /** `why`: the runtime's code of a failed connection, null if it has none. */
  failed(operation: Operation, failure: Unusable, why?: string | null): void;
  worked(operation: Operation): void;
  /** Of the last verify or settle that failed, until one of the same operation works; null: none. */
  problem(): FacilitatorProblem | null;
};

const CHECK_LOGIN =
  'Check X402_FACILITATOR_AUTH with CDP_API_KEY_ID and CDP_API_KEY_SECRET, or X402_FACILITATOR_HEADERS_FILE, and the clock of this machine.';
/** An outage fails thousands of calls for one cause. */
const LOGGED_EVERY_MS = 60_000;

export function facilitatorWatch({
  clock,
  logger,
}: {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}): FacilitatorWatch {
  /** Of each operation whose last call failed, the newest at the end. */
  const problems = new Map<Operation, FacilitatorProblem>();
  const loggedAt = new Map<string, number>();

  /** The facilitator answers, and states a failure of its own. */
  function logOwnFailure(operation: Operation, code: string): void {
    const line = `${operation} ${code}`;
    const nowMs = clock.monotonic();
    if (nowMs - (loggedAt.get(line) ?? Number.NEGATIVE_INFINITY) < LOGGED_EVERY_MS) return;
    loggedAt.set(line, nowMs);
    logger.warn('the facilitator states a failure of its own', { operation, code });
  }

  return {
    failed(operation, { problem, cause: code }, why = null) {
      if (problem === null) return logOwnFailure(operation, code);
      if (operation !== 'supported') {
        problems.delete(operation);
        problems.set(operation, problem);
      }
      const hint = problem === 'login_refused' ? { hint: CHECK_LOGIN } : {};
      logger.condition('facilitator', problem, { operation, code, ...hint, ...(why !== null && { why }) });
    },
    worked(operation) {
      if (problems.delete(operation) && problems.size === 0) logger.condition('facilitator', null);
    },
    problem: () => [...problems.values()].at(-1) ?? null,
  };
}

/**
 * Why an answer is no result; null: it is one. `isVerdict`: its body judges the payment. 401 is about the login in any
 * case; 403 unless it is a verdict, since a facilitator may refuse a payment with it.
 */
export function unusable(answer: ExchangeAnswer | ExchangeFailure, isVerdict: boolean): Unusable | null {
  if ('code' in answer) return { problem: 'no_answer', cause: answer.code };
  const { status } = answer;
  if (status === 401 || (status === 403 && !isVerdict))
    return { problem: 'login_refused', cause: `status_${status}` };
  if (!isComplete(answer)) return { problem: 'failing', cause: `status_${status}` };
  if (isVerdict) return null;
  return { problem: 'failing', cause: status >= 400 ? `status_${status}` : 'answer_malformed' };
}

/**
 * A facilitator may reject a payment with 4xx. 5xx means that it failed, and the operation may have continued, whatever the
 * body contains. 408, 425 and 429 are sent by proxies.
 */
export const isComplete = ({ status }: ExchangeAnswer): boolean =>
  (status >= 200 && status < 300) || (status >= 400 && status < 500 && ![408, 425, 429].includes(status));
