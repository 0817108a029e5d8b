// The event log: every event in order, append-only. Everything else can be rebuilt from it.

import { DAMAGE_CAUSE, type Damage, damagedPlace, REMEDY } from '#src/domain/damage.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type NewerKind, newerText } from '#src/domain/event-versions.ts';
import type { LogHealth } from '#src/domain/monitoring/health.ts';
import type { JsonObject } from '../domain/canonical-json.ts';

export type { LogHealth, RecordedEvent };

export type NewEvent = {
  /** A random UUID, generated once per append call, and repeated only by a repeat of that call. */
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
  readonly metadata: JsonObject;
};

/** The revision of the stream's last event; `no_stream`: it has none. */
export type ExpectedRevision = bigint | 'no_stream';

/** One append of several that are stored together. */
export type StreamAppend = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly NewEvent[];
};

export type Appended = { readonly nextRevision: bigint; readonly position: string };

export type LiveMessage =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  /** Everything that was in the log when the subscription began has been delivered; live events follow. */
  | { readonly kind: 'caught_up' }
  /** The log's connection was lost and has returned: what follows may be of another history (a restored backup). */
  | { readonly kind: 'resumed' };

export interface EventLog {
  /**
   * Stores all events or none, at the end of one stream, and returns after they are durable (fsync or the server's
   * acknowledgement). Throws `WrongExpectedVersion` if the stream is at another revision, and `EventLogUnavailable`
   * if the result is unknown or the log is unavailable: the caller repeats the call with the same events (same ids)
   * and the same expectation until the result is known. The same ids at the same expected revision succeed again with
   * the first call's result, and store nothing. Other ids at that revision fail, even with equal data. An append that
   * fails does not affect others sent at the same time. The implementer does not retry and limits the call's time.
   * `events` has at least one event, and the ids are distinct lower-case UUIDs.
   */
  append(stream: string, expected: ExpectedRevision, events: readonly NewEvent[]): Promise<Appended>;
  /**
   * Stores appends to different streams in this order, all of them or none, each by the rules of `append`; throws for the
   * first one that these refuse. null: the log cannot (as EventStoreDB), and the caller appends one after the other.
   */
  readonly appendTogether: ((appends: readonly StreamAppend[]) => Promise<readonly Appended[]>) | null;
  /**
   * Events in order of revision (or reverse), from `from` (inclusive) on. A stream that does not exist is empty. Throws
   * `EventDamaged` if one of them is damaged, as `readAll` does: an answer is never incomplete.
   */
  readStream(
    stream: string,
    options?: { from?: bigint; direction?: 'forwards' | 'backwards'; max?: number },
  ): Promise<RecordedEvent[]>;
  /**
   * Events after `after` (exclusive; null: the beginning) in global order, of these types or of all. `max` counts events
   * returned.
   */
  readAll(options: {
    after: string | null;
    max: number;
    types?: readonly string[];
  }): Promise<RecordedEvent[]>;
  /**
   * Every event after `after` in global order, exactly once, without end, until `signal` aborts; then it returns. The
   * implementer handles interruptions of the log: it resumes from the last position delivered, and delivers `resumed`
   * before the next event if it noticed one. One `caught_up` is delivered when the subscriber first reaches the head.
   * Throws if the log is closed, or its file cannot be read: the caller subscribes again. Throws `EventDamaged` at a
   * damaged event, after all events before it were delivered.
   */
  subscribeAll(options: { after: string | null; signal: AbortSignalLike }): AsyncIterable<LiveMessage>;
  /** Position of the last stored event, null if there is none. Every acknowledged append is at or before it. */
  head(): Promise<string | null>;
  /**
   * Whether events are accepted: an append was acknowledged within the last 30 s, or a real write was tried and worked
   * just now. Resolves within its own time limit; never throws.
   */
  health(): Promise<LogHealth>;
  /** Waits for the calls in progress, then frees everything. */
  close(): Promise<void>;
}

/** The part of AbortSignal that ports use; the pure rooms have no runtime globals. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export class WrongExpectedVersion extends Error {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** The stream's last revision; null if it does not exist. */
  readonly actual: bigint | null;
  constructor(stream: string, expected: ExpectedRevision, actual: bigint | null) {
    super(`stream is at ${actual ?? 'no_stream'}, expected ${expected}`);
    this.name = 'WrongExpectedVersion';
    this.stream = stream;
    this.expected = expected;
    this.actual = actual;
  }
}

/** The log did not answer, or its answer contains no result: the result of the call is unknown. */
export class EventLogUnavailable extends Error {
  constructor(options: { cause?: unknown } = {}, message = 'the event log is unavailable') {
    super(message, options);
    this.name = 'EventLogUnavailable';
  }
}

/** The storage of the log is damaged beyond single events: an answer could lack events. It accepts no more appends. */
export class LogDamaged extends EventLogUnavailable {
  readonly problem: string;
  constructor(options: { cause?: unknown } = {}, problem = 'a part of its file cannot be read') {
    super(options, `the event log is damaged: ${problem}; ${REMEDY.short}`);
    this.name = 'LogDamaged';
    this.problem = problem;
  }
}

/** This process cannot use one event: what needs it fails until the operator acts, and the rest of the log is available. */
export abstract class EventUnreadable extends EventLogUnavailable {}

/** A stored event cannot be read as it was written. What needs it fails until the operator has put it back. */
export class EventDamaged extends EventUnreadable {
  readonly damage: Damage;
  constructor(damage: Damage, options: { cause?: unknown } = {}) {
    super(
      options,
      `the event log is damaged at ${damagedPlace(damage)}: ${DAMAGE_CAUSE[damage.problem]}; ${REMEDY.short}`,
    );
    this.name = 'EventDamaged';
    this.damage = damage;
  }
}

/** A release that is newer than this one has written the event. What needs it works in a process of that release. */
export class EventOfNewerRelease extends EventUnreadable {
  readonly kind: NewerKind;
  /** Of the event. */
  readonly position: string;
  /** The message names no id: one cause is one log line, however many streams have it. */
  constructor(kind: NewerKind, { stream, position }: Pick<RecordedEvent, 'stream' | 'position'>) {
    super(
      {},
      `an event of ${stream.split('-')[0]} was written by a newer release: ${newerText(kind)}; start that release`,
    );
    this.name = 'EventOfNewerRelease';
    this.kind = kind;
    this.position = position;
  }
}
