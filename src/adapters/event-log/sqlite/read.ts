// Reads the embedded log: pages by position or revision, rows as recorded events.
import type { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '#src/ports/event-log.ts';

/** Rows of one page, which blocks the event loop for about a millisecond. */
export const PAGE_ROWS = 512;
/** Positions that one page examines if most events are of other types. */
const PAGE_SCAN = 8192;

const COLUMNS = 'stream, revision, position, id, type, data, metadata, created';

export type LogReader = {
  /** Up to `max` events after `after`. `cursor`: `after` of the next page; `end`: there are no further events. */
  page(after: number, max: number, types?: readonly string[]): Page;
  stream(stream: string, from: bigint, direction: 'forwards' | 'backwards', max: number): RecordedEvent[];
  /** Position of the last event, 0 if there is none. */
  head(): number;
};
type Page = { readonly events: RecordedEvent[]; readonly cursor: number; readonly end: boolean };

export function logReader(db: DatabaseSync): LogReader {
  const head = db.prepare('SELECT max(position) AS position FROM events');
  const streams = {
    forwards: db.prepare(
      `SELECT ${COLUMNS} FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?`,
    ),
    backwards: db.prepare(
      `SELECT ${COLUMNS} FROM events WHERE stream = ? AND revision <= ? ORDER BY revision DESC LIMIT ?`,
    ),
  };
  const pageOf = (condition: string) =>
    db.prepare(
      `SELECT ${COLUMNS} FROM events WHERE position > ? AND position <= ?${condition} ORDER BY position LIMIT ?`,
    );
  const all = pageOf('');
  const ofTypes = pageOf(' AND type IN (SELECT value FROM json_each(?))');
  const headNow = () => Number(head.get()?.position ?? 0);

  return {
    head: headNow,
    page(after, max, types) {
      const last = headNow();
      const until = Math.min(last, after + PAGE_SCAN);
      const limit = Math.min(max, PAGE_ROWS);
      const rows =
        types === undefined
          ? all.all(after, until, limit)
          : ofTypes.all(after, until, JSON.stringify(types), limit);
      const events = rows.map(recorded);
      const cursor = rows.length === limit ? Number(rows.at(-1)?.position) : Math.max(after, until);
      return { events, cursor, end: cursor >= last };
    },
    stream: (stream, from, direction, max) => streams[direction].all(stream, from, max).map(recorded),
  };
}

/** SQLite's largest integer. */
export const LAST_REVISION = 2n ** 63n - 1n;

export const positionText = (position: number): string => String(position).padStart(20, '0');

/** The number of a position of this log; null is before the first. */
export function positionNumber(position: string | null): number {
  if (position === null) return 0;
  if (!/^\d{20}$/.test(position)) throw new RangeError('not a position of this log');
  return Number(position);
}

/** The table is STRICT: each column has its declared type. */
function recorded(row: Record<string, unknown>): RecordedEvent {
  return {
    stream: row.stream as string,
    revision: BigInt(row.revision as number),
    position: positionText(row.position as number),
    id: row.id as string,
    type: row.type as string,
    data: JSON.parse(row.data as string),
    metadata: JSON.parse(row.metadata as string),
    created: new Date(row.created as number).toISOString(),
  };
}
