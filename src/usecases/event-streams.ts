// Reading and writing the log for the use cases: envelopes, repeats until the fate is known, and folded streams.
import type { JsonObject } from '#src/domain/canonical-json.ts';
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, isPaymentEvent, STREAM } from '#src/domain/events.ts';
import { absentJob, evolveJob, type Job } from '#src/domain/job/state.ts';
import { type Claim, evolveClaim, freeClaim } from '#src/domain/payment/claim.ts';
import { absentPayment, evolvePayment, type Payment } from '#src/domain/payment/state.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import {
  type AbortSignalLike,
  type Appended,
  type EventLog,
  EventLogUnavailable,
  type ExpectedRevision,
  type NewEvent,
} from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';

export type JournalDeps = {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  /** Aborts when this process ends, for good: nothing is repeated any more. */
  readonly ending?: AbortSignalLike;
};

/** Gives events their random ids, once per append call; causation follows the order of the append. */
export function envelope(
  deps: Pick<JournalDeps, 'entropy'>,
  events: readonly DomainEvent[],
  correlationId: string,
  causationId: string = correlationId,
): NewEvent[] {
  let cause = causationId;
  return events.map((event) => {
    const id = deps.entropy.uuid();
    const metadata = { $correlationId: correlationId, $causationId: cause };
    cause = id;
    return { id, type: event.type, data: event.data as unknown as JsonObject, metadata };
  });
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2000;

/**
 * Repeats an append, with its own event ids at its own expected revision, until the log says stored or
 * `WrongExpectedVersion`: a living process never abandons an append of unknown fate. One that ends does, and throws
 * `EventLogUnavailable`.
 */
export async function appendUntilKnown(
  deps: JournalDeps,
  stream: string,
  expected: ExpectedRevision,
  events: readonly NewEvent[],
): Promise<Appended> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      return await deps.log.append(stream, expected, events);
    } catch (error) {
      if (!(error instanceof EventLogUnavailable) || deps.ending?.aborted) throw error;
      // Said once: a log that is away for long must not fill the operator's.
      if (pause === FIRST_PAUSE_MS) deps.logger.warn('append of unknown fate, repeating', typesOf(events));
      await deps.clock.sleep(pause, deps.ending);
    }
  }
}

const typesOf = (events: readonly NewEvent[]) => ({ types: events.map((event) => event.type) });

/** A stream folded to its state, with what an append needs to follow it. */
export type View<S> = {
  readonly stream: string;
  readonly state: S;
  /** What the next append expects. */
  readonly expected: bigint | 'no_stream';
  readonly events: readonly RecordedEvent[];
};

export const loadJob = (log: EventLog, jobId: string): Promise<View<Job>> =>
  loadStream(log, STREAM.job(jobId), absentJob, (job, event) => {
    switch (event.type) {
      case 'JobStarted':
      case 'AttemptMade':
      case 'JobCompleted':
      case 'ReceiptSigned':
        return evolveJob(job, event);
      default:
        return job;
    }
  });

export const loadPayment = (log: EventLog, stream: string): Promise<View<Payment>> =>
  loadStream(log, stream, absentPayment, (payment, event) =>
    isPaymentEvent(event) ? evolvePayment(payment, event) : payment,
  );

export const loadClaim = (log: EventLog, stream: string): Promise<View<Claim>> =>
  loadStream(log, stream, freeClaim, (claim, event) => {
    switch (event.type) {
      case 'IdempotencyKeyClaimed':
      case 'IdempotencyKeyReleased':
        return evolveClaim(claim, event);
      default:
        return claim;
    }
  });

async function loadStream<S>(
  log: EventLog,
  stream: string,
  initial: S,
  evolve: (state: S, event: DomainEvent) => S,
): Promise<View<S>> {
  const events = await log.readStream(stream);
  let state = initial;
  for (const recorded of events) {
    const event = decodeEvent(recorded);
    if (event === null)
      throw new Error(`an event of ${stream.split('-')[0]} cannot be read: ${recorded.type}`);
    state = evolve(state, event);
  }
  return { stream, state, expected: events.at(-1)?.revision ?? 'no_stream', events };
}
