// Reading the server: pages of all events and of one stream. The port's filters are applied here: each page moves on,
// and is bounded in time and memory, however few of a long log's events are asked for.
import type { EventFilter, RecordedEvent } from '#src/ports/event-log.ts';
import { type EventStoreConnection, Refusal } from './connection.ts';
import {
  allRequest,
  type Direction,
  type Placed,
  placedIn,
  type ReadFrom,
  streamRequest,
} from './messages.ts';

/** Events of one answer. */
export const PAGE_EVENTS = 512;

export type LogReader = {
  /** Up to `max` events after `after`. `cursor`: where to go on; `end`: nothing was left. */
  page(after: string | null, max: number, filter?: EventFilter): Promise<Page>;
  /** Up to `max` events from `from` on. `next`: where to go on; null: nothing was left. */
  streamPage(stream: string, from: bigint | 'end', direction: Direction, max: number): Promise<StreamPage>;
  /** Events before `from`, last first, with those that are shown to nobody. */
  before(from: ReadFrom, count: number): Promise<Placed[]>;
  /** A look at the end of the log. */
  probe(limitMs: number): Promise<void>;
};
export type Page = {
  readonly events: RecordedEvent[];
  readonly cursor: string | null;
  readonly end: boolean;
};
/** The server's largest revision. */
export const LAST_REVISION = 2n ** 63n - 1n;

/** `last`: revision of the last event that was read, shown or not; null where there was none. */
export type StreamPage = {
  readonly events: RecordedEvent[];
  readonly last: bigint | null;
  readonly next: bigint | null;
};

export function logReader(connection: EventStoreConnection): LogReader {
  async function placedBy(request: Parameters<EventStoreConnection['read']>[0]): Promise<Placed[]> {
    const placed: Placed[] = [];
    await connection.read(request, (answer) => {
      const one = placedIn(answer);
      if (one !== null) placed.push(one);
    });
    return placed;
  }

  return {
    async page(after, max, filter) {
      // The server gives the event at `after` again.
      const count = filter === undefined ? Math.min(max + 1, PAGE_EVENTS) : PAGE_EVENTS;
      const placed = await placedBy(allRequest(after ?? 'start', 'forwards', count));
      const events: RecordedEvent[] = [];
      let cursor = after;
      for (const { position, event } of placed) {
        if (cursor !== null && position <= cursor) continue;
        cursor = position;
        if (event !== null && fits(event, filter)) events.push(event);
        if (events.length === max) return { events, cursor, end: false };
      }
      return { events, cursor, end: placed.length < count };
    },
    async streamPage(stream, from, direction, max) {
      const count = Math.min(max, PAGE_EVENTS);
      const placed = await placedBy(streamRequest(stream, from, direction, count)).catch(nothingOfDeleted);
      const last = placed.at(-1)?.revision ?? null;
      const events = shown(placed);
      if (last === null || placed.length < count) return { events, last, next: null };
      if (direction === 'forwards') return { events, last, next: last + 1n };
      return { events, last, next: last === 0n ? null : last - 1n };
    },
    before: (from, count) => placedBy(allRequest(from, 'backwards', count)),
    probe: (limitMs) => connection.read(allRequest('end', 'backwards', 1), () => {}, limitMs),
  };
}

/** A stream that was deleted for ever is as one that is not there. */
function nothingOfDeleted(error: unknown): Placed[] {
  if (error instanceof Refusal) return [];
  throw error;
}

const shown = (placed: readonly Placed[]): RecordedEvent[] =>
  placed.flatMap(({ event }) => (event === null ? [] : [event]));

function fits({ type, stream }: RecordedEvent, { types, streamPrefixes }: EventFilter = {}): boolean {
  if (types !== undefined && !types.includes(type)) return false;
  return streamPrefixes === undefined || streamPrefixes.some((prefix) => stream.startsWith(prefix));
}
