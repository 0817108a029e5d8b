// Shared by tests of an event log: new events and stream names, and a subscriber with a wait for a condition.
import assert from 'node:assert/strict';
import {
  type Appended,
  type EventLog,
  type ExpectedRevision,
  type LiveMessage,
  type NewEvent,
  type RecordedEvent,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';

/** Long enough for a loaded machine; only a hanging test reaches it. */
export const PATIENCE_MS = 100_000;

export function newEvent(type = 'Noted', data: NewEvent['data'] = {}): NewEvent {
  return { id: crypto.randomUUID(), type, data, metadata: {} };
}

/** Appends at the end of the stream, wherever that is. */
export async function appendNext(
  log: Pick<EventLog, 'append' | 'readStream'>,
  stream: string,
  events: readonly NewEvent[],
): Promise<Appended> {
  const [last] = await log.readStream(stream, { direction: 'backwards', max: 1 });
  return log.append(stream, last?.revision ?? 'no_stream', events);
}

export const newEvents = (count: number, type = 'Noted'): NewEvent[] =>
  Array.from({ length: count }, (_, n) => newEvent(type, { n }));

/** An unused stream name; the part before the first `-` is the category. */
export const freshStream = (category = 'note'): string => `${category}-${freshId()}`;

export const freshId = (): string => crypto.randomUUID().replaceAll('-', '');

export const ids = (events: readonly { readonly id: string }[]): string[] => events.map((event) => event.id);

/** The result of the promise, or a failure that names what was waited for. */
export async function within<T>(promise: Promise<T>, what: string | (() => string)): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const give = () => reject(new Error(`waited too long for ${typeof what === 'string' ? what : what()}`));
    timer = setTimeout(give, PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export type Follower = {
  readonly messages: readonly LiveMessage[];
  /** Events so far, in order of arrival. */
  events(): RecordedEvent[];
  /** Resolves when the condition holds; it is evaluated after each message. */
  until(condition: () => boolean, what: string): Promise<void>;
  /** Aborts and waits for the subscription's end. */
  stop(): Promise<void>;
  /** The subscription's own end, or its error. */
  readonly ended: Promise<void>;
};

/** `prefix`: events of other streams are passed over, since others may write to a shared server. */
export function follow(
  log: EventLog,
  options: { after: string | null; prefix?: string; each?: () => Promise<void> },
): Follower {
  const { each, prefix = '', after } = options;
  const messages: LiveMessage[] = [];
  const abort = new AbortController();
  let failure: { cause: unknown } | null = null;
  const waiters = new Set<() => void>();
  const notify = () => {
    for (const waiter of [...waiters]) waiter();
  };
  const run = async () => {
    for await (const message of log.subscribeAll({ after, signal: abort.signal })) {
      if (message.kind === 'event' && !message.event.stream.startsWith(prefix)) continue;
      messages.push(message);
      notify();
      await each?.();
    }
  };
  const ended = run();
  ended.catch((cause: unknown) => {
    failure = { cause };
    notify();
  });
  const events = () => messages.flatMap((message) => (message.kind === 'event' ? [message.event] : []));
  const until = (condition: () => boolean, what: string) => {
    const holds = new Promise<void>((resolve, reject) => {
      const look = () => {
        if (failure === null && !condition()) return;
        waiters.delete(look);
        if (failure !== null) reject(failure.cause);
        else resolve();
      };
      waiters.add(look);
      look();
    });
    return within(holds, () => `${what}; ${messages.length} messages came`);
  };
  return {
    messages,
    events,
    until,
    ended,
    async stop() {
      abort.abort();
      await within(ended, 'the end of an aborted subscription');
    },
  };
}

/** Asserts that each event is delivered once, in strictly rising order of position. */
export function assertGlobalOrder(events: readonly RecordedEvent[]): void {
  for (const [i, event] of events.entries()) {
    const before = events[i - 1];
    assert.ok(
      before === undefined || before.position < event.position,
      `${before?.position} before ${event.position}`,
    );
  }
}

/** Revisions 0, 1, 2 … of each stream, in order of arrival. */
export function assertWholeStreams(events: readonly RecordedEvent[]): void {
  const next = new Map<string, bigint>();
  for (const { stream, revision } of events) {
    assert.equal(revision, next.get(stream) ?? 0n, `the next event of ${stream}`);
    next.set(stream, revision + 1n);
  }
}

/** For assert.rejects: a WrongExpectedVersion with these values. */
export const wrongVersion =
  (stream: string, expected: ExpectedRevision, actual: bigint | null) => (error: unknown) => {
    assert.ok(error instanceof WrongExpectedVersion, String(error));
    assert.deepEqual([error.stream, error.expected, error.actual], [stream, expected, actual]);
    return true;
  };
