// How long a caller waits for an answer while the job behind it goes on whatever happens to the connection.
import { Fault } from '../domain/refusal.ts';
import type { Clock } from '../ports/clock.ts';
import type { Call } from './execution-call.ts';

/** The longest that a caller's connection waits; the job itself goes on. */
const ANSWER_BUDGET_MS = 110_000;

export async function withinBudget<T>(
  deps: { readonly clock: Clock },
  call: Call,
  answered: Promise<T>,
): Promise<T> {
  const giveUp = new AbortController();
  const over = deps.clock.sleep(ANSWER_BUDGET_MS, giveUp.signal).then((): never => {
    throw logUnavailable(call, new Error('the answer budget is over'));
  });
  over.catch(() => undefined);
  answered.catch(() => undefined);
  try {
    return await Promise.race([answered, over]);
  } finally {
    giveUp.abort();
  }
}

export function logUnavailable({ startedJobId, lookup }: Call, cause: unknown): Fault {
  const again = lookup.paymentStream === null ? '' : ' Repeat with the same payment header.';
  const message =
    startedJobId === null
      ? `The event log is unavailable: nothing was sent.${again}`
      : `The event log is unavailable: the result will be found at the job.${again}`;
  return new Fault('event_log_unavailable', message, {
    cause,
    retryAfterSeconds: 5,
    ...(startedJobId === null ? {} : { details: { jobId: startedJobId } }),
  });
}
