// Reads the whole event log in pages, up to its head at the start: for exports and audits.

import { decodeEvent } from '#src/domain/event-codec.ts';
import { STREAM } from '#src/domain/events.ts';
import { EventDamaged, type EventLog, LogDamaged, type RecordedEvent } from '#src/ports/event-log.ts';
import type { EventScan, Scan } from '#src/ports/event-scan.ts';

/** Only one page is held in memory. */
const PAGE = 512;

/**
 * Pages of what is stored after `after` (exclusive; null: from the first event on), damage included. They contain every
 * event that was acknowledged before the first page; of later events, only those that are in the last page.
 */
export async function* pagesOf(
  log: Pick<EventScan, 'lastPosition' | 'scan'>,
  after: string | null,
  {
    index = false,
    onHead,
  }: { readonly index?: boolean; readonly onHead?: (head: string | null) => void } = {},
): AsyncGenerator<Scan, void, undefined> {
  const head = await log.lastPosition();
  onHead?.(head);
  for (let last = after; head !== null && (last === null || last < head); ) {
    const page = await log.scan({ after: last, max: PAGE, index });
    yield page;
    if (page.next === null) return;
    last = page.next;
  }
}

/** The transparency log's name, from its first checkpoint that can be read; null if the event log has none. */
export async function receiptLogOrigin(
  log: Pick<EventLog, 'readStream'> & Pick<EventScan, 'lastPosition' | 'scan'>,
): Promise<string | null> {
  if (!(await hasReceiptLog(log))) return null;
  for await (const { found } of pagesOf(log, null))
    for (const one of found) {
      const event =
        one.kind === 'event' && one.event.stream === STREAM.receiptLog ? decodeEvent(one.event) : null;
      if (event?.type === 'CheckpointSigned') return event.data.origin;
    }
  return null;
}

/** true also if its stream is damaged. */
async function hasReceiptLog(log: Pick<EventLog, 'readStream'>): Promise<boolean> {
  try {
    return (await log.readStream(STREAM.receiptLog, { max: 1 })).length > 0;
  } catch (error) {
    if (error instanceof EventDamaged || error instanceof LogDamaged) return true;
    throw error;
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
