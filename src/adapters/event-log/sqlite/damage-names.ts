// The streams and revisions of damaged events, which the index of the streams still has.
import type { DatabaseSync } from 'node:sqlite';
import type { Damage } from '#src/domain/damage.ts';
import { isSqliteUnreadable } from '#src/lib/sqlite-error.ts';
import type { Scanned } from '#src/ports/event-scan.ts';
import { nextTurn } from './file.ts';
import type { Point } from './row.ts';

type Name = Pick<Damage, 'stream' | 'revision'>;

/** Rows of the index in one turn: about a millisecond. */
const INDEX_ROWS = 1024;
/** Places whose names are kept from one search in the index. */
const NAMED_AHEAD = 20_000;
const NONE = { from: 0, to: -1, of: new Map<number, Name>() };
const AFTER = `SELECT stream, revision, position FROM events WHERE (stream, revision) > (?, ?)
  ORDER BY stream, revision LIMIT ${INDEX_ROWS}`;

/** `read`: on the scan's own connection. */
export function damageNames(read: <T>(run: (db: DatabaseSync) => T) => Promise<T>) {
  /** By position, from `from` to `to`. */
  let known = NONE;

  /** Reads the index once for all places that follow, in short turns. */
  async function search(from: number) {
    const names = new Map<number, Name>();
    const to = from + NAMED_AHEAD;
    let [stream, revision]: [string, number] = ['', -1];
    for (let more = true; more; ) {
      const rows = await read((db) => {
        try {
          return db.prepare(AFTER).all(stream, revision);
        } catch (error) {
          // The rest has no names.
          if (isSqliteUnreadable(error)) return [];
          throw error;
        }
      });
      for (const row of rows) {
        const position = Number(row.position);
        [stream, revision] = [String(row.stream), Number(row.revision)];
        if (position >= from && position <= to) names.set(position, { stream, revision: String(revision) });
      }
      more = rows.length === INDEX_ROWS;
      if (more) await nextTurn();
    }
    return { from, to, of: names };
  }

  return {
    /** The events, and the damage with what is known of it. */
    async named(points: readonly Point[]): Promise<readonly Scanned[]> {
      const found: Scanned[] = [];
      for (const point of points) {
        if (point.event !== null) {
          found.push({ kind: 'event', event: point.event });
          continue;
        }
        const position = Number(point.damage.from);
        const isNamed = point.damage.stream !== null;
        if (!isNamed && (position < known.from || position > known.to)) known = await search(position);
        const damage = { ...point.damage, ...(isNamed ? {} : known.of.get(position)) };
        const last = found.at(-1);
        if (last?.kind === 'damaged' && isOneRun(last.damage, damage))
          found[found.length - 1] = { kind: 'damaged', damage: { ...last.damage, to: damage.to } };
        else found.push({ kind: 'damaged', damage });
      }
      return found;
    },
    forget(): void {
      known = NONE;
    },
  };
}

/** Consecutive places without names. */
const isOneRun = (before: Damage, after: Damage): boolean =>
  before.stream === null &&
  after.stream === null &&
  before.problem === after.problem &&
  Number(before.to) + 1 === Number(after.from);
