// Reads the log from the server: one stream, the whole log, its head, and a scan behind damage.
import {
  END,
  type ReadPosition,
  type ReadRevision,
  START,
  StreamDeletedError,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { EventDamaged, type EventLog, type RecordedEvent } from '#src/ports/event-log.ts';
import type { EventScan } from '#src/ports/event-scan.ts';
import type { KnownDamage } from '../known-damage.ts';
import { type EventStoreConnection, LEADER } from './connection.ts';
import { positionOf, type ServerEvent, scannedEvent } from './events.ts';

const PAGE_EVENTS = 512;
/** Events of the first read for the head: the server's standard projections write several events after each of ours. */
const HEAD_EVENTS = 16;

export type EventStoreReader = ReturnType<typeof eventStoreReader>;

export function eventStoreReader(connection: EventStoreConnection, known: KnownDamage) {
  /** null: not part of this log. Throws `EventDamaged`. */
  function whole({ event, damage }: ServerEvent): RecordedEvent | null {
    if (damage === null) return event;
    known.note(damage);
    throw new EventDamaged(damage);
  }

  /** `from`: inclusive forwards, exclusive backwards; null: the beginning, or the end. */
  function page(
    from: string | null,
    direction: 'forwards' | 'backwards',
    maxCount: number,
    limitMs?: number,
  ): Promise<ServerEvent[]> {
    const first = direction === 'forwards' ? START : END;
    const fromPosition: ReadPosition = from === null ? first : positionOf(from);
    const range = { ...LEADER, fromPosition, direction, maxCount };
    return connection.read((client) => client.readAll(range), limitMs);
  }

  /** A missing or deleted stream is empty. Events in it that are not part of this log count in `max`. */
  const readStream: EventLog['readStream'] = async (stream, options = {}) => {
    const { direction = 'forwards', max: maxCount = Number.MAX_SAFE_INTEGER } = options;
    const fromRevision: ReadRevision = options.from ?? (direction === 'forwards' ? START : END);
    const range = { ...LEADER, fromRevision, direction, maxCount };
    try {
      const read = await connection.read((client) => client.readStream(stream, range));
      return read.flatMap((each) => whole(each) ?? []);
    } catch (error) {
      if (error instanceof StreamNotFoundError || error instanceof StreamDeletedError) return [];
      throw error;
    }
  };

  /** Types are filtered here: the server filters subscriptions only. */
  const readAll: EventLog['readAll'] = async ({ after, max, types }) => {
    const events: RecordedEvent[] = [];
    let cursor = after;
    for (let more = true; more && events.length < max; ) {
      const read = await page(cursor, 'forwards', PAGE_EVENTS);
      for (const each of read) {
        if (cursor !== null && each.position <= cursor) continue;
        cursor = each.position;
        const event = whole(each);
        if (event !== null && (types?.includes(event.type) ?? true)) events.push(event);
        if (events.length === max) break;
      }
      more = read.length === PAGE_EVENTS;
    }
    return events;
  };

  /** The server verifies the hashes of its chunks itself: here a damaged event is one that is not JSON any more. */
  const scan: EventScan['scan'] = async ({ after, max }) => {
    // `after` itself is read again.
    const count = Math.min(max, PAGE_EVENTS) + (after === null ? 0 : 1);
    const read = await page(after, 'forwards', count);
    const found = read.filter(({ position }) => after === null || position > after).flatMap(scannedEvent);
    for (const one of found) if (one.kind === 'damaged') known.note(one.damage);
    const next = read.length < count ? null : (read.at(-1)?.position ?? null);
    return { found, next, unchecked: 0, unindexed: [] };
  };

  const head = headSearch((from, count) => page(from, 'backwards', count));
  return { whole, page, readStream, readAll, scan, head };
}

/**
 * Position of the last event of this log, null if there is none. On an idle server thousands of the server's own events
 * follow it, so a part of the log that was searched is not searched again. `from` null: the end.
 */
export function headSearch(
  readBackwards: (from: string | null, count: number) => Promise<ServerEvent[]>,
): () => Promise<string | null> {
  /** No event of this log is at or before `upTo` but after `head`. */
  let searched: { readonly upTo: string; readonly head: string | null } = { upTo: '', head: null };

  return async () => {
    let read = await readBackwards(null, HEAD_EVENTS);
    const upTo = read[0]?.position ?? '';
    // The log ends before the part that was searched: the server was restored from a backup.
    if (upTo < searched.upTo) searched = { upTo: '', head: null };
    let head: string | null = null;
    for (let count = HEAD_EVENTS; ; count = PAGE_EVENTS) {
      const found = read.find(({ position, event }) => event !== null || position <= searched.upTo);
      if (found !== undefined) head = found.event === null ? searched.head : found.position;
      const last = read.at(-1);
      if (found !== undefined || last === undefined || read.length < count) break;
      read = await readBackwards(last.position, PAGE_EVENTS);
    }
    if (searched.upTo < upTo) searched = { upTo, head };
    return head;
  };
}
