// Reads one stream of the embedded log. A damaged row is never passed over: the revisions of a stream have no gaps.
import type { DatabaseSync } from 'node:sqlite';
import { isSqliteUnreadable } from '#src/lib/sqlite-error.ts';
import { EventDamaged, LogDamaged, type RecordedEvent } from '#src/ports/event-log.ts';
import { type Point, type Row, wholeRows } from './row.ts';

/** SQLite's largest integer. */
const LAST_REVISION = 2n ** 63n - 1n;

type Range = {
  readonly from?: bigint;
  readonly direction?: 'forwards' | 'backwards';
  readonly max?: number;
};

/** Its function throws `EventDamaged`; `LogDamaged` if the index of the streams is damaged. */
export function streamReader(
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
