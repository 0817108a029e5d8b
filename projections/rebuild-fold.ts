// One page after the other folded into the tables beside the live ones: rows, counts and the rebuild's own checkpoint
// in one transaction, so that a rebuild that was killed goes on where it was.
import { canonicalJson, type Json } from '#src/domain/canonical-json.ts';
import type { RebuildTransaction } from '#src/ports/rebuild-store.ts';
import type { Checkpoint } from './checkpoint.ts';
import {
  foldChanges,
  type JudgedEvent,
  keysOf,
  type PlannedChange,
  planChanges,
  type Rows,
  type StoredRow,
} from './fold.ts';
import { withLeaves } from './leaves.ts';
import { type Counts, type Place, RebuildFailed, workIn, writeCounts } from './rebuild-lock.ts';
import type { JudgedPage } from './rebuild-pages.ts';
import { type JsonColumns, writeFolded } from './rebuild-rows.ts';
import type { Targets } from './rebuild-target.ts';
import type { ReadModel } from './registry.ts';
import { type Db, loadRows, type TableShape } from './rows.ts';

export type Build = {
  readonly place: Place;
  readonly models: readonly ReadModel[];
  readonly shapes: readonly TableShape[];
  readonly json: JsonColumns;
  /** Names the rebuild's checkpoint, in its own schema. */
  readonly set: string;
};

/** Never changed: what a transaction that is rolled back has folded is forgotten with it. */
export type Fold = {
  readonly checkpoint: Checkpoint | null;
  readonly counts: Counts;
  /** The rows that the last page touched: most of what the next one needs. */
  readonly recent: Rows;
  /** Some rows as they were folded, to be looked at again before they are believed. */
  readonly sample: Rows;
};

/** Rows that a sample takes of a table from each page, and holds at most. */
const SAMPLE = { page: 20, all: 400 };

function planUpTo(
  { models }: Build,
  upTo: string,
  events: readonly JudgedEvent[],
  targets: Targets['of'],
): readonly PlannedChange[] {
  const last = (model: ReadModel) => targets.get(model.name) ?? '';
  if (models.every((model) => upTo <= last(model))) return planChanges(models, events);
  // What leaves add beyond their own model's target goes with its other changes.
  return models.flatMap((model) =>
    planChanges(
      [model],
      events.filter(({ position }) => position <= last(model)),
    ),
  );
}

export async function foldPage(
  tx: RebuildTransaction<Db>,
  build: Build,
  fold: Fold,
  page: JudgedPage,
  targets: Targets['of'],
): Promise<Fold> {
  const { place, shapes } = build;
  await workIn(tx.db, place, 'beside');
  const load = (keys: Keys) => rowsFor(tx.db, build, fold, keys);
  const changes = planUpTo(build, page.position, await withLeaves(build.shapes, page.judged, load), targets);
  const rows = await load(keysOf(changes));
  const there = new Map([...rows].map(([table, found]) => [table, keysThere(found)]));
  const isThere = (table: string, key: string) => there.get(table)?.has(key) === true;
  const dirty = foldChanges(rows, changes);
  const origin = fold.checkpoint?.origin ?? page.firstId;
  const to = { position: page.position, origin, event: page.mark };
  await writeFolded(tx, build, dirty, isThere, fold.checkpoint, to);
  const counted: Record<string, number> = { ...fold.counts.rows };
  for (const { name } of shapes) {
    let count = counted[name] ?? 0;
    for (const [key, row] of dirty.get(name) ?? [])
      count += Number(row !== null) - Number(isThere(name, key));
    counted[name] = count;
  }
  const counts = {
    handled: fold.counts.handled + page.read,
    started: fold.counts.started + page.started,
    rows: counted,
  };
  await writeCounts(tx.db, counts);
  return { checkpoint: to, counts, recent: rows, sample: sampled(fold.sample, dirty) };
}

/** Before the fold, which changes the rows at hand. */
function keysThere(rows: ReadonlyMap<string, StoredRow | null>): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const [key, stored] of rows) if (stored !== null) keys.add(key);
  return keys;
}

type Keys = ReadonlyMap<string, ReadonlySet<string>>;

/** Those of the last page are at hand, the others are asked for. */
async function rowsFor(tx: Db, { shapes }: Build, { recent }: Fold, wanted: Keys): Promise<Rows> {
  const missing = new Map(
    [...wanted].map(([table, keys]) => {
      const known = recent.get(table);
      return [table, known === undefined ? keys : new Set([...keys].filter((key) => !known.has(key)))];
    }),
  );
  const rows = await loadRows(tx, shapes, new Map([...missing].filter(([, keys]) => keys.size > 0)));
  for (const [table, keys] of wanted) {
    const found = rows.get(table) ?? new Map();
    rows.set(table, found);
    for (const key of keys) if (!found.has(key)) found.set(key, recent.get(table)?.get(key) ?? null);
  }
  return rows;
}

function sampled(sample: Rows, dirty: Rows): Rows {
  const next: Rows = new Map(sample);
  for (const [table, rows] of dirty) {
    const kept = new Map(sample.get(table));
    let taken = 0;
    for (const [key, row] of rows) {
      const more = taken < SAMPLE.page && kept.size < SAMPLE.all;
      if (!kept.has(key) && !more) continue;
      if (!kept.has(key)) taken++;
      kept.set(key, row);
    }
    next.set(table, kept);
  }
  return next;
}

/** Reads the sample back and throws `RebuildFailed` where a row is not as it was folded. */
export async function verifySample(tx: Db, { place, shapes }: Build, { sample }: Fold): Promise<void> {
  await workIn(tx, place, 'beside');
  const keys = new Map([...sample].map(([table, rows]) => [table, new Set(rows.keys())]));
  const stored = await loadRows(tx, shapes, keys);
  for (const [table, rows] of sample) {
    for (const [key, row] of rows) {
      const found = stored.get(table)?.get(key) ?? null;
      if (spelled(found) !== spelled(row)) {
        throw new RebuildFailed(`the row ${key} of ${table} was not written as it was folded`);
      }
    }
  }
}

const spelled = (value: unknown): string => canonicalJson(JSON.parse(JSON.stringify(value)) as Json);
