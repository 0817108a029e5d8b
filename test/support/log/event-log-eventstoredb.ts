// Event logs on a server for tests: a test server for each test, or a real server that all tests share.
import assert from 'node:assert/strict';
import {
  type EventStoreDbEventLogOptions,
  eventStoreDbEventLog,
} from '#src/adapters/event-log/eventstoredb/event-log.ts';
import { isObject } from '#src/lib/is-object.ts';
import { sleep } from '#src/lib/time.ts';
import { type EventLog, EventLogUnavailable, type RecordedEvent } from '#src/ports/event-log.ts';
import type { EventLogHarness } from '#test/support/contract/event-log-harness.ts';
import {
  type EventStoreServer,
  type EventStoreServerOptions,
  startEventStoreServer,
} from './eventstore-server.ts';

/** A server of its own for each log, gone afterwards. */
export const ownServerHarness: EventLogHarness = {
  spoils: true,
  together: false,
  async open() {
    const { url, events, end } = await startEventStoreServer();
    const open = async () => eventStoreDbEventLog({ url });
    const spoil = async ({ id }: RecordedEvent) => {
      events.find((event) => event.id === id)?.data.fill(0x2a);
    };
    return { log: await open(), again: open, spoil, dispose: end };
  },
};

/** What the suite leaves behind stays: its names are fresh. */
export function sharedServerHarness(url: string): EventLogHarness {
  const open = async () => eventStoreDbEventLog({ url });
  return {
    spoils: false,
    together: false,
    open: async () => ({
      log: await open(),
      again: open,
      spoil: () => assert.fail('a real server'),
      dispose: async () => {},
    }),
  };
}

export type ServerBench = {
  readonly server: EventStoreServer;
  readonly log: EventLog;
  /** A further handle; closed after the test. */
  handle(options?: Partial<EventStoreDbEventLogOptions>): EventLog;
};

/** A server and handles on it, freed however the body ends. */
export async function withEventStore(
  body: (bench: ServerBench) => Promise<void>,
  options: Partial<EventStoreDbEventLogOptions> = {},
  serverOptions: EventStoreServerOptions = {},
): Promise<void> {
  const server = await startEventStoreServer(serverOptions);
  const handles: EventLog[] = [];
  const handle: ServerBench['handle'] = (own = options) => {
    const log = eventStoreDbEventLog({ url: server.url, ...own });
    handles.push(log);
    return log;
  };
  try {
    await body({ server, log: handle(), handle });
  } finally {
    await Promise.all(handles.map((log) => log.close()));
    await server.end();
  }
}

/** Repeats the call until its result is known, as callers do. */
export async function untilKnown<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof EventLogUnavailable)) throw error;
      await sleep(5);
    }
  }
}

/** The type that the client's package gives the error behind a log line's cause. */
export function rootCause(line: { readonly fields: unknown } | undefined): unknown {
  let cause: unknown = line?.fields;
  for (; isObject(cause) && 'cause' in cause && cause.cause !== undefined; cause = cause.cause);
  return isObject(cause) ? cause.type : cause;
}
