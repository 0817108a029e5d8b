// Reads the whole file behind damage, on a connection of its own: pages that the other connection keeps in memory say
// nothing about the file.
import { DatabaseSync } from 'node:sqlite';
import type { Damage } from '#src/domain/damage.ts';
import { isSqliteUnreadable } from '#src/lib/sqlite-error.ts';
import { LogDamaged } from '#src/ports/event-log.ts';
import type { EventScan, Scanned } from '#src/ports/event-scan.ts';
import { nextTurn } from './file.ts';
import type { FileDamage } from './file-damage.ts';
import { type LogReader, logReader, positionNumber } from './read.ts';
import { type Point, positionText } from './row.ts';

export type ScanDependencies = {
  readonly file: string;
  /** Waits for locks of other processes; throws if the log is closed. */
  readonly read: <T>(run: () => T) => Promise<T>;
  /** Receives each damaged event that is found. */
  readonly damage: { note(damage: Damage): void };
  readonly structure: Pick<FileDamage, 'noted' | 'wholeRead'>;
};

type Connection = {
  readonly db: DatabaseSync;
  readonly reader: LogReader;
  /** Read once, if the last row itself is damaged. */
  headByIndex: number | null;
};

/** Rows of the index in one turn: about a millisecond. */
const INDEX_ROWS = 1024;
/** Places whose names are kept from one search in the index. */
const NAMED_AHEAD = 20_000;
/** Lines of SQLite's check. */
const PROBLEMS_MAX = 100;

export function logScanner({
  file,
  read,
  damage,
  structure,
}: ScanDependencies): EventScan & { close(): void } {
  let connection: Connection | null = null;
  /** null: some of its events were not looked up in the index, or not found there. */
  let pass: { readonly next: string; readonly isWhole: () => void } | null = null;
  /** Streams and revisions by position, from `from` to `to`, as the index has them. */
  let names = { from: 0, to: -1, of: new Map<number, Pick<Damage, 'stream' | 'revision'>>() };

  function open(): Connection {
    if (connection !== null) return connection;
    const db = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    try {
      const hasChecksum = db
        .prepare("SELECT 1 FROM pragma_table_info('events') WHERE name = 'checksum'")
        .get();
      connection = {
        db,
        reader: logReader(db, hasChecksum !== undefined),
        headByIndex: null,
      };
      return connection;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** What is read later comes from the file again. */
  function close(): void {
    connection?.db.close();
    connection = null;
    names = { from: 0, to: -1, of: new Map() };
  }

  /** If the last row is damaged, the index still has its position. */
  function headOf(opened: Connection): number {
    try {
      return opened.reader.head();
    } catch (error) {
      if (!isSqliteUnreadable(error)) throw error;
      structure.noted(error);
      const sql = 'SELECT max(+position) AS position FROM events INDEXED BY sqlite_autoindex_events_1';
      opened.headByIndex ??= Number(opened.db.prepare(sql).get()?.position ?? 0);
      return opened.headByIndex;
    }
  }

  function part(after: number, { max, index }: Pick<Parameters<EventScan['scan']>[0], 'max' | 'index'>) {
    const opened = open();
    const { reader } = opened;
    const head = headOf(opened);
    const until = Math.min(head, after + max);
    const points = reader.points(after + 1, until);
    const unindexed = !index
      ? []
      : points.flatMap(({ event }, n) =>
          event === null || reader.isFoundAt(event.stream, event.revision, after + 1 + n) ? [] : [event],
        );
    return { points, unindexed, next: until < head ? positionText(until) : null };
  }

  /** Reads the index once for all places that follow, in short turns. */
  async function namesFrom(first: number) {
    if (first >= names.from && first <= names.to) return names.of;
    const of = new Map<number, Pick<Damage, 'stream' | 'revision'>>();
    const to = first + NAMED_AHEAD;
    const sql =
      'SELECT stream, revision, position FROM events WHERE (stream, revision) > (?, ?) ORDER BY stream, revision LIMIT ?';
    let [stream, revision]: [string, number] = ['', -1];
    for (let more = true; more; ) {
      const rows = await read(() => {
        try {
          return open().db.prepare(sql).all(stream, revision, INDEX_ROWS);
        } catch (error) {
          // The rest has no names.
          if (isSqliteUnreadable(error)) return [];
          throw error;
        }
      });
      for (const row of rows) {
        const position = Number(row.position);
        [stream, revision] = [String(row.stream), Number(row.revision)];
        if (position >= first && position <= to) of.set(position, { stream, revision: String(revision) });
      }
      more = rows.length === INDEX_ROWS;
      if (more) await nextTurn();
    }
    names = { from: first, to, of };
    return of;
  }

  async function named(points: readonly Point[]): Promise<readonly Scanned[]> {
    const found: Scanned[] = [];
    for (const point of points) {
      if (point.event !== null) {
        found.push({ kind: 'event', event: point.event });
        continue;
      }
      const position = Number(point.damage.from);
      const name = point.damage.stream === null ? (await namesFrom(position)).get(position) : undefined;
      const next = { ...point.damage, ...name };
      const last = found.at(-1);
      if (last?.kind === 'damaged' && isOneRun(last.damage, next))
        found[found.length - 1] = { kind: 'damaged', damage: { ...last.damage, to: next.to } };
      else found.push({ kind: 'damaged', damage: next });
    }
    return found;
  }

  return {
    async lastPosition() {
      const head = await read(() => headOf(open()));
      return head === 0 ? null : positionText(head);
    },
    async scan({ after, ...options }) {
      const from = positionNumber(after);
      const begun = after === null ? structure.wholeRead() : pass?.next === after ? pass.isWhole : null;
      const { points, unindexed, next } = await read(() => part(from, options));
      const found = await named(points);
      for (const one of found) if (one.kind === 'damaged') damage.note(one.damage);
      for (const { stream, revision } of unindexed)
        structure.noted(new LogDamaged({}, `its index lacks revision ${revision} of stream ${stream}`));
      const isIndexed = unindexed.length === 0 && found.every(isNamed);
      const isWhole = options.index && isIndexed ? begun : null;
      pass = isWhole === null || next === null ? null : { next, isWhole };
      if (next === null) {
        close();
        isWhole?.();
      }
      return { found, next, unchecked: points.filter(({ unchecked }) => unchecked).length, unindexed };
    },
    checkFiles: () =>
      read(() => {
        try {
          const rows = open().db.prepare(`PRAGMA integrity_check(${PROBLEMS_MAX})`).all();
          const texts = rows.map((row) => String(row.integrity_check));
          return texts.length === 1 && texts[0] === 'ok' ? [] : texts;
        } catch (error) {
          // The check itself fails at what it finds.
          if (isSqliteUnreadable(error)) return [String((error as Error).message)];
          throw error;
        } finally {
          close();
        }
      }),
    close,
  };
}

/** Also of a damaged event whose place the index has. */
const isNamed = (one: Scanned): boolean => one.kind === 'event' || one.damage.stream !== null;

/** Consecutive places without names. */
const isOneRun = (before: Damage, after: Damage): boolean =>
  before.stream === null &&
  after.stream === null &&
  before.problem === after.problem &&
  Number(before.to) + 1 === Number(after.from);
