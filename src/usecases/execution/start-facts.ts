// What JobStarted states of a call.
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { RequestDisclosures } from './disclosures.ts';
import type { Call } from './execution-call.ts';
import { startedRun } from './run-due.ts';
import type { AnnouncedFacts } from './run-job.ts';

/** The job that a call starts. `payment` null: nothing is charged. */
export type Starting = {
  readonly jobId: string;
  readonly paymentStream: string | null;
  readonly payment: PaymentFacts | null;
  readonly opened: RequestDisclosures;
};

type StartDeps = {
  readonly clock: Pick<Clock, 'now'>;
  readonly payments: Pick<Payments, 'mode'>;
  readonly owner: string;
};

export function startFacts(
  { clock, payments, owner }: StartDeps,
  { route, run, lookup, read, decisionId, decisionHash }: Call,
  { jobId, paymentStream, payment, opened }: Starting,
): AnnouncedFacts {
  const { method, retry, timeoutMs } = read.request;
  return {
    jobId,
    mode: payments.mode,
    route,
    method,
    fingerprint: lookup.fingerprint,
    payment,
    paymentStream,
    claimStream: lookup.claimStream,
    decisionId,
    decisionHash,
    attemptsAllowed: retry.attempts,
    backoffMs: retry.backoffMs,
    timeoutMs,
    owner,
    commitments: opened.commitments,
    schedule: run === undefined ? null : startedRun(run, clock.now()),
  };
}
