// What the embedded event log of a stopped service holds, read by the adapter itself.
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';

/** All events of a data directory in global order. */
export async function recordedIn(dataDir: string): Promise<RecordedEvent[]> {
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
  try {
    const all: RecordedEvent[] = [];
    for (;;) {
      const page = await log.readAll({ after: all.at(-1)?.position ?? null, max: 1000 });
      if (page.length === 0) return all;
      all.push(...page);
    }
  } finally {
    await log.close();
  }
}

/** Types of the events of every job, by job id, in order. */
export function jobTypes(events: readonly RecordedEvent[]): Map<string, string[]> {
  const types = new Map<string, string[]>();
  for (const { stream, type } of events) {
    if (!stream.startsWith('job-')) continue;
    const id = stream.slice('job-'.length);
    types.set(id, [...(types.get(id) ?? []), type]);
  }
  return types;
}
