// Event logs on a server for tests: one of the in-repo ones for each test, or a real one that all share.
import { eventStoreDbEventLog } from '#src/adapters/event-log/eventstoredb.ts';
import type { EventLogHarness } from './event-log-harness.ts';
import { startEventStoreServer } from './eventstore-server.ts';

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
