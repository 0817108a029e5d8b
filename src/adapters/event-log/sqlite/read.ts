// Reads the embedded log: pages by position or revision, rows as recorded events. A damaged row is never passed over:
// positions have no gaps, nor have the revisions of a stream.
import type { DatabaseSync } from 'node:sqlite';
import type { Damage } from '#src/domain/damage.ts';
import { isSqliteUnreadable } from '#src/lib/sqlite-error.ts';
import { EventDamaged, LogDamaged, type RecordedEvent } from '#src/ports/event-log.ts';
import { columnsOf, positionText, type Row, recorded } from './row.ts';

/** Rows of one page, which blocks the event loop for about a millisecond. */
export const PAGE_ROWS = 512;
/** Positions that one page examines if most events are of other types. */
const PAGE_SCAN = 8192;

export type LogReader = {
  /**
   * Up to `max` events after `after`, up to the first damaged one: if that is the next, throws `EventDamaged`. `cursor`:
   * `after` of the next page; `end`: there are no further events.
   */
  page(after: number, max: number, types?: readonly string[]): Page;
  /** Throws `EventDamaged`; `LogDamaged` if the index of the streams is damaged. */
  stream(stream: string, from: bigint, direction: Direction, max: number): RecordedEvent[];
  /** Position of the last event, 0 if there is none. */
  head(): number;
  /** The event at a position up to the head. */
  point(position: number): Point;
  /** Whether the index of the streams, which is stored apart from the rows, has this event at this position. */
  isFoundAt(stream: unknown, revision: unknown, position: number): boolean;
  /** All events at these positions up to the head; null if one of them is damaged. */
  range(from: number, to: number): readonly (Point & { readonly event: RecordedEvent })[] | null;
};
type Direction = 'forwards' | 'backwards';
type Page = { readonly events: RecordedEvent[]; readonly cursor: number; readonly end: boolean };
/** `unchecked`: an event of an older release. */
export type Point =
  | { readonly event: RecordedEvent; readonly unchecked: boolean }
  | { readonly event: null; readonly unchecked: false; readonly damage: Damage };

/** `hasChecksum`: the table has that column. */
export function logReader(db: DatabaseSync, hasChecksum: boolean): LogReader {
  const columns = columnsOf(hasChecksum);
  const head = db.prepare('SELECT max(position) AS position FROM events');
  const orders = {
    forwards: 'stream = ? AND revision >= ? ORDER BY revision LIMIT ?',
    backwards: 'stream = ? AND revision <= ? ORDER BY revision DESC LIMIT ?',
  } as const;
  const streams = {
    forwards: db.prepare(`SELECT ${columns} FROM events WHERE ${orders.forwards}`),
    backwards: db.prepare(`SELECT ${columns} FROM events WHERE ${orders.backwards}`),
  };
  // From the index alone, which contains both columns.
  const indexed = {
    forwards: db.prepare(`SELECT revision, position FROM events WHERE ${orders.forwards}`),
    backwards: db.prepare(`SELECT revision, position FROM events WHERE ${orders.backwards}`),
  };
  const place = db.prepare('SELECT position FROM events WHERE stream = ? AND revision = ?');
  const at = db.prepare(`SELECT ${columns} FROM events WHERE position = ?`);
  const pageOf = (condition: string) =>
    db.prepare(
      `SELECT ${columns} FROM events WHERE position BETWEEN ? AND ?${condition} ORDER BY position LIMIT ?`,
    );
  const all = pageOf('');
  const ofTypes = pageOf(' AND type IN (SELECT value FROM json_each(?))');
  const headNow = () => Number(head.get()?.position ?? 0);

  /** null: a row of them is damaged, or is not the one that was expected as the `i`th. */
  function eventsOf(
    select: () => Row[],
    isExpected: (row: Row, i: number) => boolean,
  ): RecordedEvent[] | null {
    try {
      const events: RecordedEvent[] = [];
      for (const row of select()) {
        const event = isExpected(row, events.length) ? recorded(row) : null;
        if (event === null) return null;
        events.push(event);
      }
      return events;
    } catch (error) {
      if (isSqliteUnreadable(error)) return null;
      throw error;
    }
  }

  function point(position: number): Point {
    const damaged = (problem: Damage['problem'], named: Pick<Damage, 'stream' | 'revision'> = UNNAMED) => {
      const text = positionText(position);
      return { event: null, unchecked: false as const, damage: { from: text, to: text, ...named, problem } };
    };
    try {
      const row = at.get(position);
      if (row === undefined) return damaged('missing');
      const event = recorded(row);
      if (event !== null) return { event, unchecked: row.checksum === null };
      return damaged('changed', isFoundAt(row.stream, row.revision, position) ? nameOf(row) : UNNAMED);
    } catch (error) {
      if (isSqliteUnreadable(error)) return damaged('unreadable');
      throw error;
    }
  }

  function isFoundAt(stream: unknown, revision: unknown, position: number): boolean {
    if (typeof stream !== 'string' || (typeof revision !== 'number' && typeof revision !== 'bigint'))
      return false;
    try {
      return place.get(stream, revision)?.position === position;
    } catch (error) {
      if (isSqliteUnreadable(error)) return false;
      throw error;
    }
  }

  /** One event after another, up to the first damaged one. */
  function pageByPoints(
    after: number,
    until: number,
    limit: number,
    types?: readonly string[],
  ): RecordedEvent[] {
    const events: RecordedEvent[] = [];
    for (let position = after + 1; position <= until && events.length < limit; position++) {
      const found = point(position);
      if (found.event === null) {
        if (events.length > 0) break;
        throw new EventDamaged(found.damage);
      }
      if (types?.includes(found.event.type) ?? true) events.push(found.event);
    }
    return events;
  }

  function page(after: number, max: number, types?: readonly string[]): Page {
    const last = headNow();
    const until = Math.min(last, after + PAGE_SCAN);
    const limit = Math.min(max, PAGE_ROWS);
    const events =
      types === undefined
        ? inPlace(after + 1, until, limit)
        : eventsOf(
            () => ofTypes.all(after + 1, until, JSON.stringify(types), limit),
            () => true,
          );
    if (events === null) {
      const found = pageByPoints(after, until, limit, types);
      const cursor = found.length === 0 ? until : Number(found.at(-1)?.position);
      return { events: found, cursor, end: cursor >= last };
    }
    const cursor = events.length === limit ? Number(events.at(-1)?.position) : Math.max(after, until);
    return { events, cursor, end: cursor >= last };
  }

  /** The first `limit` events of all at these positions; null: one of them is damaged. */
  function inPlace(
    from: number,
    to: number,
    limit: number,
    seen?: (row: Row) => void,
  ): RecordedEvent[] | null {
    const events = eventsOf(
      () => all.all(from, to, limit),
      (row, i) => {
        seen?.(row);
        return row.position === from + i;
      },
    );
    return events?.length === Math.min(limit, Math.max(0, to - from + 1)) ? events : null;
  }

  const range: LogReader['range'] = (from, to) => {
    const unchecked: boolean[] = [];
    const events = inPlace(from, to, Math.max(0, to - from + 1), ({ checksum }) => {
      unchecked.push(checksum === null);
    });
    return events?.map((event, i) => ({ event, unchecked: unchecked[i] ?? false })) ?? null;
  };

  function stream(wanted: string, from: bigint, direction: Direction, max: number): RecordedEvent[] {
    // As SQLite stores it.
    const name = wanted.replaceAll(/\p{Cs}/gu, '\ufffd');
    const step = direction === 'forwards' ? 1 : -1;
    let next: unknown = direction === 'forwards' ? Number(from) : null;
    const events = eventsOf(
      () => streams[direction].all(name, from, max),
      (row) => {
        const isNext = row.stream === name && (next === null || row.revision === next);
        next = Number(row.revision) + step;
        return isNext;
      },
    );
    if (events !== null) return events;
    throw streamDamage(name, from, direction, max);
  }

  /** By the index, which names the events whose rows cannot be read. */
  function streamDamage(name: string, from: bigint, direction: Direction, max: number): Error {
    let before: number | null = direction === 'forwards' ? Number(from) - 1 : null;
    for (const row of indexedRows(name, from, direction, max)) {
      const [revision, position] = [Number(row.revision), Number(row.position)];
      const named = { stream: name, revision: String(revision) };
      const found = point(position);
      if (found.event === null) return new EventDamaged({ ...found.damage, ...named });
      const { event } = found;
      if (event.stream !== name || event.revision !== BigInt(revision)) return indexDamaged(name);
      if (before !== null && Math.abs(revision - before) !== 1) return indexDamaged(name);
      before = revision;
    }
    return indexDamaged(name);
  }

  function indexedRows(name: string, from: bigint, direction: Direction, max: number): readonly Row[] {
    try {
      return indexed[direction].all(name, from, max);
    } catch (error) {
      throw isSqliteUnreadable(error) ? indexDamaged(name, error) : error;
    }
  }

  return { head: headNow, page, stream, point, range, isFoundAt };
}

const UNNAMED = { stream: null, revision: null } as const;

const nameOf = ({ stream, revision }: Row) => ({ stream: String(stream), revision: String(revision) });

/** The index of the streams cannot be read at this stream, or contradicts the events, which SQLite does not notice. */
const indexDamaged = (stream: string, cause?: unknown) =>
  new LogDamaged({ cause }, `its index cannot be read at stream ${stream}`);

/** SQLite's largest integer. */
export const LAST_REVISION = 2n ** 63n - 1n;

/** The number of a position of this log; null is before the first. */
export function positionNumber(position: string | null): number {
  if (position === null) return 0;
  if (!/^\d{20}$/.test(position)) throw new RangeError('not a position of this log');
  return Number(position);
}
