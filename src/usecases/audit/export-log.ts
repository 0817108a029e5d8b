// Reads the whole event log in pages, up to its head at the start: for exports and audits.

import { decodeEvent } from '#src/domain/event-codec.ts';
import { STREAM } from '#src/domain/events.ts';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';

/** Only one page is held in memory. */
const PAGE = 512;

/**
 * Pages of events after `after` (exclusive; null: from the first on). They contain every event that was acknowledged before
 * the first page; of later events, only those that are in the last page.
 */
export async function* pagesOf(
  log: Pick<EventLog, 'head' | 'readAll'>,
  after: string | null,
  onHead: (head: string | null) => void = () => undefined,
): AsyncGenerator<readonly RecordedEvent[], void, undefined> {
  const head = await log.head();
  onHead(head);
  for (let last = after; head !== null && (last === null || last < head); ) {
    const page = await log.readAll({ after: last, max: PAGE });
    const next = page.at(-1)?.position;
    if (next === undefined) return;
    yield page;
    last = next;
  }
}

/** The transparency log's name, from its first checkpoint; null if the event log has none. */
export async function receiptLogOrigin(log: Pick<EventLog, 'readStream'>): Promise<string | null> {
  for (let from = 0n; ; from += BigInt(PAGE)) {
    const events = await log.readStream(STREAM.receiptLog, { from, max: PAGE });
    for (const recorded of events) {
      const event = decodeEvent(recorded);
      if (event?.type === 'CheckpointSigned') return event.data.origin;
    }
    if (events.length < PAGE) return null;
  }
}

/** Whether the event log has this event at this location. */
export async function containsEvent(
  log: Pick<EventLog, 'readStream'>,
  { stream, revision, id, position }: Pick<RecordedEvent, 'stream' | 'revision' | 'id' | 'position'>,
): Promise<boolean> {
  const [found] = await log.readStream(stream, { from: revision, max: 1 });
  return found?.revision === revision && found.id === id && found.position === position;
}
