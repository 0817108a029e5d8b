// What an event log of services holds, read by its adapter.
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';

/** Works on the embedded log of a data directory that no process serves. */
export async function withLog<T>(dataDir: string, work: (log: EventLog) => Promise<T>): Promise<T> {
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
  try {
    return await work(log);
  } finally {
    await log.close();
  }
}

/** All events of a data directory in global order. */
export const recordedIn = (dataDir: string): Promise<RecordedEvent[]> => withLog(dataDir, eventsOf);

/** The same of any log; closes it. */
export const allOf = (log: EventLog): Promise<RecordedEvent[]> => eventsOf(log).finally(() => log.close());

/** All events of a log in global order. */
export async function eventsOf(log: EventLog): Promise<RecordedEvent[]> {
  const all: RecordedEvent[] = [];
  for (;;) {
    const page = await log.readAll({ after: all.at(-1)?.position ?? null, max: 1000 });
    if (page.length === 0) return all;
    all.push(...page);
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
