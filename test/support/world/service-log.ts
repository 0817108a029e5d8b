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

/** Appends events of another log, each to its stream and in their order. */
export async function appendAll(log: EventLog, events: readonly RecordedEvent[]): Promise<void> {
  let appended: Promise<unknown>[] = [];
  for (const { stream, revision, id, type, data, metadata } of events) {
    // Appends are committed in the order of the calls.
    const expected = revision === 0n ? 'no_stream' : revision - 1n;
    appended.push(log.append(stream, expected, [{ id, type, data, metadata }]));
    if (appended.length < 512) continue;
    await Promise.all(appended);
    appended = [];
  }
  await Promise.all(appended);
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
