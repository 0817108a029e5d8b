// Reads the embedded log by position. A damaged row is never passed over: positions have no gaps.
import type { DatabaseSync } from 'node:sqlite';
import type { Damage } from '#src/domain/damage.ts';
import { isSqliteUnreadable } from '#src/lib/sqlite-error.ts';
import { EventDamaged, LogDamaged, type RecordedEvent } from '#src/ports/event-log.ts';
import { columnsOf, type Point, positionText, type Row, recorded, wholeRows } from './row.ts';

/** Rows of one page, which blocks the event loop for about a millisecond. */
export const PAGE_ROWS = 512;
/** Positions that one page examines if most events are of other types. */
const PAGE_SCAN = 8192;

/** `cursor`: `after` of the next page; `end`: there are no further events. */
type Page = { readonly events: RecordedEvent[]; readonly cursor: number; readonly end: boolean };

export type LogReader = ReturnType<typeof logReader>;

/** `hasChecksum`: the table has that column. */
export function logReader(db: DatabaseSync, hasChecksum: boolean) {
  const columns = columnsOf(hasChecksum);
  const last = db.prepare('SELECT max(position) AS position FROM events');
  const place = db.prepare('SELECT position FROM events WHERE stream = ? AND revision = ?');
  const at = db.prepare(`SELECT ${columns} FROM events WHERE position = ?`);
  const between = `SELECT ${columns} FROM events WHERE position BETWEEN ? AND ?`;
  const all = db.prepare(`${between} ORDER BY position`);
  const ofTypes = db.prepare(
    `${between} AND type IN (SELECT value FROM json_each(?)) ORDER BY position LIMIT ?`,
  );

  /** Position of the last event, 0 if there is none. */
  const head = () => Number(last.get()?.position ?? 0);

  /** Whether the index of the streams, which is stored apart from the rows, has this event at this position. */
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

  /** The event at a position up to the head. */
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

  /** All events at these positions up to the head: read at once, or one by one if one of them is damaged. */
  function points(from: number, to: number): readonly Point[] {
    const width = Math.max(0, to - from + 1);
    const whole = wholeRows(
      () => all.all(from, to),
      (row, i) => row.position === from + i,
    );
    if (whole?.length === width) return whole;
    return Array.from({ length: width }, (_, n) => point(from + n));
  }

  /** Up to `max` events after `after`, up to the first damaged one: if that is the next, throws `EventDamaged`. */
  function page(after: number, max: number, types?: readonly string[]): Page {
    const limit = Math.min(max, PAGE_ROWS);
    const headNow = head();
    if (types !== undefined) {
      const until = Math.min(headNow, after + PAGE_SCAN);
      const whole = wholeRows(
        () => ofTypes.all(after + 1, until, JSON.stringify(types), limit),
        () => true,
      );
      if (whole !== null) {
        const events = whole.map(({ event }) => event);
        const cursor = events.length === limit ? Number(events.at(-1)?.position) : Math.max(after, until);
        return { events, cursor, end: cursor >= headNow };
      }
    }
    const events: RecordedEvent[] = [];
    let cursor = after;
    for (const found of points(after + 1, Math.min(headNow, after + limit))) {
      if (found.event === null && cursor > after) break;
      if (found.event === null) throw new EventDamaged(found.damage);
      cursor++;
      if (types?.includes(found.event.type) ?? true) events.push(found.event);
    }
    return { events, cursor, end: cursor >= headNow };
  }

  return { head, page, points, isFoundAt, stream: streamReader(db, columns, point) };
}

const UNNAMED = { stream: null, revision: null } as const;

const nameOf = ({ stream, revision }: Row) => ({ stream: String(stream), revision: String(revision) });

/** The number of a position of this log; null is before the first. */
export function positionNumber(position: string | null): number {
  if (position === null) return 0;
  if (!/^\d{20}$/.test(position)) throw new RangeError('not a position of this log');
  return Number(position);
}

// ── read stream ──────────────────────────────────────────────────────────────────────────────────────
// Reads one stream of the embedded log. A damaged row is never passed over: the revisions of a stream have no gaps.

/** SQLite's largest integer. */
const LAST_REVISION = 2n ** 63n - 1n;

type Range = {
  readonly from?: bigint;
  readonly direction?: 'forwards' | 'backwards';
  readonly max?: number;
};

/** Its function throws `EventDamaged`; `LogDamaged` if the index of the streams is damaged. */
function streamReader(
  db: DatabaseSync,
  columns: string,
  point: (position: number) => Point,
): (stream: string, range: Range) => RecordedEvent[] {
  const inOrder = (selected: string) => ({
    forwards: db.prepare(
      `SELECT ${selected} FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?`,
    ),
    backwards: db.prepare(
      `SELECT ${selected} FROM events WHERE stream = ? AND revision <= ? ORDER BY revision DESC LIMIT ?`,
    ),
  });
  const rows = inOrder(columns);
  // From the index alone, which contains both columns.
  const indexed = inOrder('revision, position');

  /** By the index, which names the events whose rows cannot be read. */
  function damageIn(name: string, select: () => readonly Row[], first: number | null): Error {
    let before: number | null = first === null ? null : first - 1;
    try {
      for (const row of select()) {
        const [revision, position] = [Number(row.revision), Number(row.position)];
        const found = point(position);
        if (found.event === null)
          return new EventDamaged({ ...found.damage, stream: name, revision: String(revision) });
        const { event } = found;
        if (event.stream !== name || event.revision !== BigInt(revision)) break;
        if (before !== null && Math.abs(revision - before) !== 1) break;
        before = revision;
      }
      return indexDamaged(name);
    } catch (error) {
      if (isSqliteUnreadable(error)) return indexDamaged(name, error);
      throw error;
    }
  }

  return (stream, { direction = 'forwards', from, max = Number.MAX_SAFE_INTEGER }) => {
    // As SQLite stores it.
    const name = stream.replaceAll(/\p{Cs}/gu, '\ufffd');
    const start = from ?? (direction === 'forwards' ? 0n : LAST_REVISION);
    const first = direction === 'forwards' ? Number(start) : null;
    const step = direction === 'forwards' ? 1 : -1;
    let next: unknown = first;
    const whole = wholeRows(
      () => rows[direction].all(name, start, max),
      (row) => {
        const isNext = row.stream === name && (next === null || row.revision === next);
        next = Number(row.revision) + step;
        return isNext;
      },
    );
    if (whole !== null) return whole.map(({ event }) => event);
    throw damageIn(name, () => indexed[direction].all(name, start, max), first);
  };
}

/** The index of the streams cannot be read at this stream, or contradicts the events, which SQLite does not notice. */
const indexDamaged = (stream: string, cause?: unknown) =>
  new LogDamaged({ cause }, `its index cannot be read at stream ${stream}`);
