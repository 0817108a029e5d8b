// Streams as the use cases read and write them: folded to their state, and appended to at the revision that was read. A
// use case decides on a state; who else writes to the stream meanwhile is known here only.
import type { JsonObject } from '#src/domain/canonical-json.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import {
  type DomainEvent,
  type EventType,
  isClaimEvent,
  isJobEvent,
  isKeyEvent,
  isPaymentEvent,
  isRefundEvent,
  isScheduleEvent,
  STREAM,
} from '#src/domain/events.ts';
import { absentJob, evolveJob, type Job } from '#src/domain/job/state.ts';
import { evolveClaim, freeClaim } from '#src/domain/payment/claim.ts';
import { evolveClaims, NO_CLAIMS } from '#src/domain/payment/refund.ts';
import { absentPayment, evolvePayment } from '#src/domain/payment/state.ts';
import { absentSchedule, evolveSchedule } from '#src/domain/schedule/state.ts';
import { evolveAnnounced, NO_KEYS } from '#src/domain/signing-keys/announced.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import {
  type AbortSignalLike,
  type Appended,
  type EventLog,
  EventLogUnavailable,
  EventUnreadable,
  type ExpectedRevision,
  type NewEvent,
  type StreamAppend,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { eventIn } from './read-events.ts';

export type JournalDeps = {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  /** Aborts when this process shuts down: nothing is repeated any more. */
  readonly ending?: AbortSignalLike;
};

// ── kinds of streams ────────────────────────────────────────────────────────────────────────────────────

/** What the streams of one kind contain, and how they are folded. `Id`: what the callers know them by. */
export type StreamDeclaration<S, E extends DomainEvent> = {
  readonly nameOf: (id: string) => string;
  readonly isEvent: (event: DomainEvent) => event is E;
  readonly absent: S;
  readonly evolve: (state: S, event: E) => S;
  /** The correlation id of an event that is appended. */
  readonly correlationOf: (event: E, stream: string) => string;
};

const streamOf = <S, E extends DomainEvent>(kind: StreamDeclaration<S, E>): StreamDeclaration<S, E> => kind;

const byName = (stream: string): string => stream;

/** By the job's id. */
export const JOB = streamOf({
  nameOf: STREAM.job,
  isEvent: isJobEvent,
  absent: absentJob,
  evolve: evolveJob,
  correlationOf: ({ data }) => data.jobId,
});

/** By the stream's name. */
export const PAYMENT = streamOf({
  nameOf: byName,
  isEvent: isPaymentEvent,
  absent: absentPayment,
  evolve: evolvePayment,
  correlationOf: ({ data }) => data.jobId,
});

/** By the stream's name. */
export const CLAIM = streamOf({
  nameOf: byName,
  isEvent: isClaimEvent,
  absent: freeClaim,
  evolve: evolveClaim,
  correlationOf: ({ data }) => data.jobId,
});

/** By the schedule's id. */
export const SCHEDULE = streamOf({
  nameOf: STREAM.schedule,
  isEvent: isScheduleEvent,
  absent: absentSchedule,
  evolve: evolveSchedule,
  correlationOf: ({ data }) => data.scheduleId,
});

/** What one transaction refunds, by the stream's name. */
export const REFUND = streamOf({
  nameOf: byName,
  isEvent: isRefundEvent,
  absent: NO_CLAIMS,
  evolve: evolveClaims,
  correlationOf: (_, stream) => stream,
});

/** There is one. */
export const KEYS = streamOf({
  nameOf: () => STREAM.keys,
  isEvent: isKeyEvent,
  absent: NO_KEYS,
  evolve: evolveAnnounced,
  correlationOf: ({ data }) => data.keyId,
});

// ── reading ─────────────────────────────────────────────────────────────────────────────────────────────

/** Where the next append belongs. */
export type Place = { readonly stream: string; readonly expected: bigint | 'no_stream' };

/** A stream folded to its state, with what the next append expects. */
export type View<S> = Place & { readonly state: S };

/** `events`: as they are stored. */
export type Loaded<S> = View<S> & { readonly events: readonly RecordedEvent[] };
export type JobView = Loaded<Job>;

/** Throws as `eventIn`. */
export async function load<S, E extends DomainEvent>(
  { log }: Pick<JournalDeps, 'log'>,
  kind: StreamDeclaration<S, E>,
  id: string,
): Promise<Loaded<S>> {
  const stream = kind.nameOf(id);
  const events = await log.readStream(stream);
  let state = kind.absent;
  for (const recorded of events) {
    const event = eventIn(recorded);
    if (kind.isEvent(event)) state = kind.evolve(state, event);
  }
  return { stream, state, expected: events.at(-1)?.revision ?? 'no_stream', events };
}

const REREAD_MS = 500;

/**
 * For facts that cannot wait for the caller: repeats the read while the event log is unavailable. Throws `EventUnreadable`:
 * the job stays open, and recovery closes it when the event is put back, or in a process of the newer release.
 */
export async function loadSurely<S, E extends DomainEvent>(
  deps: JournalDeps,
  kind: StreamDeclaration<S, E>,
  id: string,
): Promise<Loaded<S>> {
  for (;;) {
    try {
      return await load(deps, kind, id);
    } catch (error) {
      const isTransient = error instanceof EventLogUnavailable && !(error instanceof EventUnreadable);
      if (!isTransient || deps.ending?.aborted) throw error;
      await deps.clock.sleep(REREAD_MS, deps.ending);
    }
  }
}

// ── writing ─────────────────────────────────────────────────────────────────────────────────────────────

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
export const appendUntilKnown = (
  deps: JournalDeps,
  stream: string,
  expected: ExpectedRevision,
  events: readonly NewEvent[],
): Promise<Appended> => untilKnown(deps, events, () => deps.log.append(stream, expected, events));

/** As `appendUntilKnown`, several appends in one: `WrongExpectedVersion` of one of the streams, and nothing is stored. */
export const appendTogetherUntilKnown = (
  deps: JournalDeps,
  appendTogether: NonNullable<EventLog['appendTogether']>,
  appends: readonly StreamAppend[],
): Promise<readonly Appended[]> => {
  const events = appends.flatMap((one) => one.events);
  return untilKnown(deps, events, () => appendTogether(appends));
};

async function untilKnown<T>(
  deps: JournalDeps,
  events: readonly NewEvent[],
  append: () => Promise<T>,
): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      return await append();
    } catch (error) {
      if (!(error instanceof EventLogUnavailable) || deps.ending?.aborted) throw error;
      // Logged once per append, however long the event log stays unavailable.
      if (pause === FIRST_PAUSE_MS)
        deps.logger.warn('the event log did not confirm an append; it is repeated', {
          types: events.map(({ type }): EventType | string => type),
        });
      await deps.clock.sleep(pause, deps.ending);
    }
  }
}

/**
 * Appends at a revision that was read. Returns null if another process was first. `repeats` false: an append of unknown fate
 * is not repeated, but throws `EventLogUnavailable`.
 */
export async function appendUnlessOvertaken(
  deps: JournalDeps,
  { stream, expected }: Place,
  events: readonly NewEvent[],
  { repeats = true } = {},
): Promise<Appended | null> {
  return orNull(
    repeats ? appendUntilKnown(deps, stream, expected, events) : deps.log.append(stream, expected, events),
  );
}

/** null: another process was first. */
export async function orNull<T>(appending: Promise<T>): Promise<T | null> {
  try {
    return await appending;
  } catch (error) {
    if (error instanceof WrongExpectedVersion) return null;
    throw error;
  }
}

/** Appends at the revision read, and returns the view after it. Throws `WrongExpectedVersion` if another process was first. */
export async function append<S, E extends DomainEvent>(
  deps: JournalDeps,
  kind: StreamDeclaration<S, E>,
  view: View<NoInfer<S>>,
  events: readonly NoInfer<E>[],
): Promise<View<S>> {
  const [first] = events;
  if (first === undefined) return view;
  const enveloped = envelope(deps, events, kind.correlationOf(first, view.stream));
  const { nextRevision } = await appendUntilKnown(deps, view.stream, view.expected, enveloped);
  return { stream: view.stream, state: events.reduce<S>(kind.evolve, view.state), expected: nextRevision };
}

/** As `append`, but returns null if another process was first. */
export const tryAppend = <S, E extends DomainEvent>(
  deps: JournalDeps,
  kind: StreamDeclaration<S, E>,
  view: View<NoInfer<S>>,
  events: readonly NoInfer<E>[],
): Promise<View<S> | null> => orNull(append(deps, kind, view, events));

/** What a command decides: events to append, if any, and its answer once they are stored. */
export type Decision<E, R> = { readonly events: readonly E[]; readonly answer: R };

/**
 * Loads the stream, lets `command` decide on its state and appends what it decides at the revision read. If another process
 * was first, the command decides again on the new state. `command` may read elsewhere, and writes nothing.
 */
export async function decide<S, E extends DomainEvent, R>(
  deps: JournalDeps,
  kind: StreamDeclaration<S, E>,
  id: string,
  command: (view: Loaded<S>) => Decision<NoInfer<E>, R> | Promise<Decision<NoInfer<E>, R>>,
): Promise<{ readonly view: View<S>; readonly answer: R }> {
  for (;;) {
    const loaded = await load(deps, kind, id);
    const { events, answer } = await command(loaded);
    const view = await tryAppend(deps, kind, loaded, events);
    if (view !== null) return { view, answer };
  }
}
