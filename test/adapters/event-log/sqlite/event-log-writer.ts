// A writer process: appends pairs of events to streams of its own, and prints each pair's first id once acknowledged.
// If the log is unavailable it prints that, and repeats the call with the same ids until the result is known.
// Arguments: the log's file, a name, how many pairs (0: until killed), how many callers at once, and `together` if the events
// of a pair belong to two streams.
import { writeSync } from 'node:fs';
import process from 'node:process';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { sleep } from '#src/lib/time.ts';
import { type Appended, EventLogUnavailable, type NewEvent } from '#src/ports/event-log.ts';
import { newEvents } from '#test/support/contract/event-log-fixtures.ts';

const [file = '', name = '', pairs = '0', callers = '1', how = ''] = process.argv.slice(2);
const log = await sqliteEventLog({ file });
let left = pairs === '0' ? Number.POSITIVE_INFINITY : Number(pairs);

async function call(n: number): Promise<void> {
  const stream = `${name}-${n}x`;
  for (let next: bigint | 'no_stream' = 'no_stream'; left > 0; ) {
    left--;
    const events = newEvents(2);
    const expected = next;
    next = await untilKnown(() => store(stream, expected, events));
    writeSync(1, `${events[0]?.id}\n`);
  }
}

async function store(stream: string, expected: bigint | 'no_stream', events: readonly NewEvent[]) {
  if (how !== 'together') return log.append(stream, expected, events);
  const appends = events.map((event, n) => ({ stream: `${stream}-${n}`, expected, events: [event] }));
  const [appended] = (await log.appendTogether?.(appends)) ?? [];
  return appended ?? Promise.reject(new Error('this log cannot'));
}

async function untilKnown(append: () => Promise<Appended>): Promise<bigint> {
  for (;;) {
    try {
      return (await append()).nextRevision;
    } catch (error) {
      if (!(error instanceof EventLogUnavailable)) throw error;
      const { ok } = await log.health();
      writeSync(1, `unavailable, health ${ok}: ${error.cause}\n`);
      await sleep(5);
    }
  }
}

await Promise.all(Array.from({ length: Number(callers) }, (_, n) => call(n)));
await log.close();
