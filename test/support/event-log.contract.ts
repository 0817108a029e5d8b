// The event log's contract, for every adapter: what the port promises, proved through the port alone.
// Leaves to each adapter's own tests: files, processes, servers, and what happens when they break.
import { appendContract } from './event-log-contract-append.ts';
import { readContract } from './event-log-contract-read.ts';
import { repeatContract } from './event-log-contract-repeats.ts';
import { subscribeContract } from './event-log-contract-subscribe.ts';
import { type EventLogHarness, logTest } from './event-log-harness.ts';

export type { EventLogHarness } from './event-log-harness.ts';

export function eventLogContract(name: string, harness: EventLogHarness): void {
  const logged = logTest(name, harness);
  appendContract(logged);
  repeatContract(logged);
  readContract(logged);
  subscribeContract(logged);
}
