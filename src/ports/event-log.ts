// The event log: what happened, in order, for ever. Everything else can be rebuilt from it.

import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { JsonObject } from '../domain/canonical-json.ts';

export type { RecordedEvent };

export type NewEvent = {
  /** A UUID drawn at random once per append call, and repeated only by the repeat of that call. */
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
  readonly metadata: JsonObject;
};

/** The revision of the stream's last event, or a word of EventStoreDB's. */
export type ExpectedRevision = bigint | 'no_stream' | 'stream_exists' | 'any';

export type Appended = { readonly nextRevision: bigint; readonly position: string };

export type EventFilter = { readonly types?: readonly string[]; readonly streamPrefixes?: readonly string[] };

export type LiveMessage =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  /** All that stood in the log when the subscription asked has been delivered; live events follow. */
  | { readonly kind: 'caught_up' }
  /**
   * The log's connection was lost and has returned. Events after the last one delivered follow; they may be of another
   * history if a backup was restored meanwhile.
   */
  | { readonly kind: 'resumed' };

export interface EventLog {
  /**
   * Stores all events or none, at the end of one stream, and answers after they are durable (fsync or the
   * server's acknowledgement). Throws `WrongExpectedVersion` where the stream is elsewhere, and
   * `EventLogUnavailable` where the fate is unknown or the log is away: the caller repeats the call with the
   * same events (same ids) and the same expectation until it knows. The same ids at the same expected revision
   * succeed again with the first call's answer, and store nothing. Other ids at that revision fail, however equal
   * their data. Appends that fail leave others, sent at the same time, alone.
   * The implementer does not retry and bounds the call's time by itself.
   */
  append(stream: string, expected: ExpectedRevision, events: readonly NewEvent[]): Promise<Appended>;
  /** Events in order of revision (or reverse), from `from` (inclusive) on. A stream that is not there is empty. */
  readStream(
    stream: string,
    options?: { from?: bigint; direction?: 'forwards' | 'backwards'; max?: number },
  ): Promise<RecordedEvent[]>;
  /** Events after `after` (exclusive; null: the beginning) in global order. `max` counts events returned. */
  readAll(options: { after: string | null; max: number; filter?: EventFilter }): Promise<RecordedEvent[]>;
  /**
   * Every event after `after` in global order, exactly once, without end, until `signal` aborts; then it returns.
   * Interruptions of the log are the implementer's: it resumes from the last position delivered, and reports an
   * interruption that it noticed by `resumed`, before the next event. One `caught_up` comes when the subscriber first reaches the head.
   */
  subscribeAll(options: {
    after: string | null;
    filter?: EventFilter;
    signal: AbortSignalLike;
  }): AsyncIterable<LiveMessage>;
  /** Position of the last stored event, null where there is none. Every acknowledged append is at or before it. */
  head(): Promise<string | null>;
  /** Resolves within its own time limit; never throws. */
  health(): Promise<{ readonly ok: boolean }>;
  /** Finishes what was handed over, then frees everything. */
  close(): Promise<void>;
}

/** The part of AbortSignal that ports use; the pure rooms know no runtime's globals. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** The stream is not where the append expected it. */
export class WrongExpectedVersion extends Error {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** The stream's last revision; null where it does not exist. */
  readonly actual: bigint | null;
  constructor(stream: string, expected: ExpectedRevision, actual: bigint | null) {
    super(`stream is at ${actual ?? 'no_stream'}, expected ${expected}`);
    this.name = 'WrongExpectedVersion';
    this.stream = stream;
    this.expected = expected;
    this.actual = actual;
  }
}

/** The log did not answer, or its answer says nothing: the fate of the call is unknown. */
export class EventLogUnavailable extends Error {
  constructor(options: { cause?: unknown } = {}) {
    super('the event log is unavailable', options);
    this.name = 'EventLogUnavailable';
  }
}
