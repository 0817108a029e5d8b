// Reading and writing the event log for the use cases: envelopes, appends repeated until their fate is known, and
// streams folded to their state.
import type { JsonObject } from '#src/domain/canonical-json.ts';
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import {
  type DomainEvent,
  type EventOf,
  type EventType,
  isClaimEvent,
  isJobEvent,
  isPaymentEvent,
  isRefundEvent,
  isScheduleEvent,
  type PaymentEvent,
  type ScheduleEvent,
  STREAM,
} from '#src/domain/events.ts';
import { absentJob, evolveJob, type Job } from '#src/domain/job/state.ts';
import { type Claim, evolveClaim, freeClaim } from '#src/domain/payment/claim.ts';
import { evolveClaims, NO_CLAIMS, type RefundClaims } from '#src/domain/payment/refund.ts';
import { absentPayment, evolvePayment, type Payment } from '#src/domain/payment/state.ts';
import { absentSchedule, evolveSchedule, type Schedule } from '#src/domain/schedule/state.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import {
  type AbortSignalLike,
  type Appended,
  EventDamaged,
  type EventLog,
  EventLogUnavailable,
  type ExpectedRevision,
  type NewEvent,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';

export type JournalDeps = {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  /** Aborts when this process shuts down: nothing is repeated any more. */
  readonly ending?: AbortSignalLike;
};

/** Draws the events' random ids, once per append call; causation follows the order of the append. */
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
 * Repeats an append, with its own event ids at its own expected revision, until the log reports it stored or throws
 * `WrongExpectedVersion`: a running process never abandons an append of unknown fate. One that shuts down does, and
 * throws `EventLogUnavailable`.
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
      // Logged once per append, however long the event log stays unavailable.
      if (pause === FIRST_PAUSE_MS)
        deps.logger.warn('the event log did not confirm an append; it is repeated', typesOf(events));
      await deps.clock.sleep(pause, deps.ending);
    }
  }
}

/** What an append resolves to; null if its stream was appended to since it was read. */
export async function unlessOvertaken<T>(append: Promise<T>): Promise<T | null> {
  try {
    return await append;
  } catch (error) {
    if (error instanceof WrongExpectedVersion) return null;
    throw error;
  }
}

const typesOf = (events: readonly NewEvent[]) => ({ types: events.map((event) => event.type) });

/** A stream folded to its state, with what the next append expects. */
export type View<S> = {
  readonly stream: string;
  readonly state: S;
  readonly expected: bigint | 'no_stream';
};

export type JobView = View<Job> & { readonly events: readonly RecordedEvent[] };
export type PaymentView = View<Payment> & { readonly events: readonly RecordedEvent[] };

export async function loadJob(log: EventLog, jobId: string): Promise<JobView> {
  const stream = STREAM.job(jobId);
  const events = await log.readStream(stream);
  return { ...fold(stream, events, isJobEvent, absentJob, evolveJob), events };
}

export async function loadPayment(log: EventLog, stream: string): Promise<PaymentView> {
  const events = await log.readStream(stream);
  return { ...fold(stream, events, isPaymentEvent, absentPayment, evolvePayment), events };
}

/**
 * For facts that cannot wait for the caller: repeats the read while the event log is unavailable. Throws `EventDamaged`: the
 * job stays open, and recovery closes it when the event is put back.
 */
async function untilRead<T>(deps: JournalDeps, read: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      const isTransient = error instanceof EventLogUnavailable && !(error instanceof EventDamaged);
      if (!isTransient || deps.ending?.aborted) throw error;
      await deps.clock.sleep(500, deps.ending);
    }
  }
}

export const loadPaymentSurely = (deps: JournalDeps, stream: string): Promise<View<Payment>> =>
  untilRead(deps, () => loadPayment(deps.log, stream));

export const loadJobSurely = (deps: JournalDeps, jobId: string): Promise<JobView> =>
  untilRead(deps, () => loadJob(deps.log, jobId));

export async function loadClaim(log: EventLog, stream: string): Promise<View<Claim>> {
  return fold(stream, await log.readStream(stream), isClaimEvent, freeClaim, evolveClaim);
}

export async function loadSchedule(log: EventLog, scheduleId: string): Promise<View<Schedule>> {
  const stream = STREAM.schedule(scheduleId);
  return fold(stream, await log.readStream(stream), isScheduleEvent, absentSchedule, evolveSchedule);
}

/** Appends to a schedule's stream at the revision read. Returns the view after it. */
export async function appendSchedule<S extends Schedule>(
  deps: JournalDeps,
  view: View<S>,
  events: readonly ScheduleEvent[],
): Promise<View<Schedule>> {
  const [first] = events;
  if (first === undefined) return view;
  const enveloped = envelope(deps, events, first.data.scheduleId);
  const { nextRevision } = await appendUntilKnown(deps, view.stream, view.expected, enveloped);
  const state = events.reduce<Schedule>(evolveSchedule, view.state);
  return { stream: view.stream, state, expected: nextRevision };
}

/** What a transaction refunds: the stream of its claims. */
export async function loadRefundClaims(log: EventLog, stream: string): Promise<View<RefundClaims>> {
  return fold(stream, await log.readStream(stream), isRefundEvent, NO_CLAIMS, evolveClaims);
}

function fold<S, E extends DomainEvent>(
  stream: string,
  events: readonly RecordedEvent[],
  isOfStream: (event: DomainEvent) => event is E,
  initial: S,
  evolve: (state: S, event: E) => S,
): View<S> {
  let state = initial;
  for (const recorded of events) {
    const event = decodeEvent(recorded);
    // Without ids: recovery logs each cause once, however many streams have it.
    if (event === null) throw unreadable(`${stream.split('-')[0]}`, recorded.type);
    if (isOfStream(event)) state = evolve(state, event);
  }
  return { stream, state, expected: events.at(-1)?.revision ?? 'no_stream' };
}

/** Throws for an event that this release cannot read. */
export function eventIn(recorded: RecordedEvent): DomainEvent {
  const event = decodeEvent(recorded);
  if (event !== null) return event;
  throw unreadable(recorded.stream, `${recorded.type} ${recorded.revision}`);
}

const unreadable = (stream: string, event: string) =>
  new Error(`an event of ${stream} cannot be read: ${event}`);

/** In a process that serves, a page blocks the thread for about two milliseconds. */
const PAGE = 128;

/** All events of these types after a position, in the log's order. Throws for an event that this release cannot read. */
export async function* eventsOf<T extends EventType>(
  log: Pick<EventLog, 'readAll'>,
  types: readonly T[],
  from: string | null = null,
  betweenPages?: () => Promise<void>,
): AsyncGenerator<{ readonly recorded: RecordedEvent; readonly event: EventOf<T> }> {
  for (let after = from; ; ) {
    const page = await log.readAll({ after, max: PAGE, types });
    for (const recorded of page) {
      const event = eventIn(recorded);
      if (isOneOf(types, event)) yield { recorded, event };
    }
    if (page.length < PAGE) return;
    after = page.at(-1)?.position ?? null;
    await betweenPages?.();
  }
}

const isOneOf = <T extends EventType>(
  types: readonly T[],
  event: { readonly type: EventType },
): event is EventOf<T> => types.some((type) => type === event.type);

/** Appends one event to a payment's stream at the revision read. Returns the view after it. */
export async function appendPayment(
  deps: JournalDeps,
  view: View<Payment>,
  event: PaymentEvent,
): Promise<View<Payment>> {
  const events = envelope(deps, [event], event.data.jobId);
  const { nextRevision } = await appendUntilKnown(deps, view.stream, view.expected, events);
  return { stream: view.stream, state: evolvePayment(view.state, event), expected: nextRevision };
}
