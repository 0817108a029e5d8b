// Reads the whole event log in pages: for exports and audits.

import { decodeEvent } from '#src/domain/event-codec.ts';
import { STREAM } from '#src/domain/events.ts';
import { EventDamaged, type EventLog, LogDamaged, type RecordedEvent } from '#src/ports/event-log.ts';
import type { EventScan, Scan, Scanned } from '#src/ports/event-scan.ts';

/** Only one page is held in memory. */
const PAGE = 512;

/**
 * Pages of what is stored after `after` (exclusive; null: from the first event on) up to `head`, damage included: with
 * `lastPosition()` as the head, every event that was acknowledged before, and none later.
 */
export async function* pagesOf(
  log: Pick<EventScan, 'scan'>,
  after: string | null,
  head: string | null,
  index = false,
): AsyncGenerator<Scan, void, undefined> {
  for (let last = after; head !== null && (last === null || last < head); ) {
    const page = await log.scan({ after: last, max: PAGE, index });
    const { next } = page;
    const isLast = next === null || next > head;
    yield isLast ? { ...page, found: page.found.filter((one) => positionOf(one) <= head) } : page;
    if (next === null) return;
    last = next;
  }
}

const positionOf = (one: Scanned): string => (one.kind === 'event' ? one.event.position : one.damage.from);

/** The transparency log's name, from its first checkpoint up to `head` that can be read; null if there is none. */
export async function receiptLogOrigin(
  log: Pick<EventLog, 'readStream'> & Pick<EventScan, 'scan'>,
  head: string | null,
): Promise<string | null> {
  if (!(await hasReceiptLog(log))) return null;
  for await (const { found } of pagesOf(log, null, head))
    for (const scanned of found) {
      const origin = scanned.kind === 'event' ? originIn(scanned.event) : null;
      if (origin !== null) return origin;
    }
  return null;
}

/** The transparency log's name, in the event of a checkpoint; null for other events. */
export function originIn(recorded: RecordedEvent): string | null {
  const event = recorded.stream === STREAM.receiptLog ? decodeEvent(recorded) : null;
  return event?.type === 'CheckpointSigned' ? event.data.origin : null;
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
