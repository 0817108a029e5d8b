// The contract of the event log port, tested through the port alone, for every adapter. Files, processes, servers and
// their faults are tested by each adapter's tests.
import { appendContract } from './event-log-contract-append.ts';
import { readContract } from './event-log-contract-read.ts';
import { repeatContract } from './event-log-contract-repeats.ts';
import { scanContract } from './event-log-contract-scan.ts';
import { subscribeContract } from './event-log-contract-subscribe.ts';
import { togetherContract } from './event-log-contract-together.ts';
import { type EventLogHarness, logTest } from './event-log-harness.ts';

export type { EventLogHarness } from './event-log-harness.ts';

export function eventLogContract(name: string, harness: EventLogHarness): void {
  const logged = logTest(name, harness);
  appendContract(logged);
  repeatContract(logged);
  togetherContract(logged, harness.together);
  readContract(logged);
  subscribeContract(logged);
  scanContract(logged);
}
