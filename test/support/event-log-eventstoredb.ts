// Event logs on a server for tests: a test server for each test, or a real server that all tests share.
import {
  type EventStoreDbEventLogOptions,
  eventStoreDbEventLog,
} from '#src/adapters/event-log/eventstoredb/event-log.ts';
import { type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { EventLogHarness } from './event-log-harness.ts';
import {
  type EventStoreServer,
  type EventStoreServerOptions,
  startEventStoreServer,
} from './eventstore-server.ts';

/** A server of its own for each log, gone afterwards. */
export const ownServerHarness: EventLogHarness = {
  reopens: true,
  async open() {
    const { url, end } = await startEventStoreServer();
    const open = async () => eventStoreDbEventLog({ url });
    return { log: await open(), again: open, dispose: end };
  },
};

/** What the suite leaves behind stays: its names are fresh. */
export function sharedServerHarness(url: string): EventLogHarness {
  const open = async () => eventStoreDbEventLog({ url });
  return {
    reopens: true,
    open: async () => ({ log: await open(), again: open, dispose: async () => {} }),
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
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
