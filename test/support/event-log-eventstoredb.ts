// Event logs on a server for tests: on the in-repo one, which each test file starts for itself, and on a real one.
import { eventStoreDbEventLog } from '#src/adapters/event-log/eventstoredb.ts';
import type { EventLogHarness } from './event-log-harness.ts';

/** Every log shares the server's one storage: the suite uses fresh names. */
export function eventStoreHarness(url: () => Promise<string>): EventLogHarness {
  return {
    reopens: true,
    async open() {
      const address = await url();
      const open = async () => eventStoreDbEventLog({ url: address });
      return { log: await open(), again: open, dispose: async () => {} };
    },
  };
}
