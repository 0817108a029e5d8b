// What an event log of services holds, read by its adapter.
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';

/** All events of a data directory in global order. */
export async function recordedIn(dataDir: string): Promise<RecordedEvent[]> {
  return allOf(await sqliteEventLog({ file: join(dataDir, 'events.db') }));
}

/** All events of a log in global order; closes it. */
export async function allOf(log: EventLog): Promise<RecordedEvent[]> {
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
export function jobTypes(events: readonly Pick<RecordedEvent, 'stream' | 'type'>[]): Map<string, string[]> {
  const types = new Map<string, string[]>();
  for (const { stream, type } of events) {
    if (!stream.startsWith('job-')) continue;
    const id = stream.slice('job-'.length);
    types.set(id, [...(types.get(id) ?? []), type]);
  }
  return types;
}
