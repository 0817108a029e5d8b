// Reads the whole file behind damage, on a connection of its own: pages that the other connection keeps in memory say
// nothing about the file.
import { DatabaseSync } from 'node:sqlite';
import type { Damage } from '#src/domain/damage.ts';
import { isSqliteUnreadable } from '#src/lib/sqlite-error.ts';
import { LogDamaged } from '#src/ports/event-log.ts';
import type { EventScan, Scanned } from '#src/ports/event-scan.ts';
import { damageNames } from './damage-names.ts';
import { hasChecksumColumn } from './file.ts';
import type { FileDamage } from './file-damage.ts';
import { type LogReader, logReader, positionNumber } from './read.ts';
import { positionText } from './row.ts';

export type ScanDependencies = {
  readonly file: string;
  /** Waits for locks of other processes; throws if the log is closed. */
  readonly read: <T>(run: () => T) => Promise<T>;
  /** Receives each damaged event that is found. */
  readonly damage: { note(damage: Damage): void };
  readonly structure: Pick<FileDamage, 'noted' | 'wholeRead'>;
};

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
  const names = damageNames((run) => read(() => run(open().db)));

  function open(): Connection {
    connection ??= openReadOnly(file);
    return connection;
  }

  /** What is read later comes from the file again. */
  function close(): void {
    connection?.db.close();
    connection = null;
    names.forget();
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

  function part(after: number, max: number, index: boolean) {
    const opened = open();
    const { reader } = opened;
    const head = headOf(opened);
    const until = Math.min(head, after + max);
    const points = reader.points(after + 1, until);
    const unindexed = points.flatMap(({ event }, n) =>
      !index || event === null || reader.isFoundAt(event.stream, event.revision, after + 1 + n)
        ? []
        : [event],
    );
    return { points, unindexed, next: until < head ? positionText(until) : null };
  }

  return {
    async lastPosition() {
      const head = await read(() => headOf(open()));
      return head === 0 ? null : positionText(head);
    },
    async scan({ after, max, index = false }) {
      const from = positionNumber(after);
      const begun = after === null ? structure.wholeRead() : pass?.next === after ? pass.isWhole : null;
      const { points, unindexed, next } = await read(() => part(from, max, index));
      const found = await names.named(points);
      for (const one of found) if (one.kind === 'damaged') damage.note(one.damage);
      for (const { stream, revision } of unindexed)
        structure.noted(new LogDamaged({}, `its index lacks revision ${revision} of stream ${stream}`));
      const isWhole = index && unindexed.length === 0 && found.every(isNamed) ? begun : null;
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

type Connection = {
  readonly db: DatabaseSync;
  readonly reader: LogReader;
  /** Read once, if the last row itself is damaged. */
  headByIndex: number | null;
};

function openReadOnly(file: string): Connection {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 0 });
  try {
    return { db, reader: logReader(db, hasChecksumColumn(db)), headByIndex: null };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Also of a damaged event whose place the index has. */
const isNamed = (one: Scanned): boolean => one.kind === 'event' || one.damage.stream !== null;
