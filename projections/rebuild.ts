// `relay rebuild`: builds this release's generation from the event log, beside the current one if there is one, and flips
// the pointer to it; or builds a scratch one and compares. Reads continue meanwhile.

import { sql } from 'drizzle-orm';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { RebuildStore, RebuildTransaction } from '#src/ports/rebuild-store.ts';
import { compareTable, type TableComparison } from './compare.ts';
import { copyBatch } from './copy.ts';
import type { JudgedEvent } from './fold.ts';
import {
  createGeneration,
  currentSchema,
  type Generation,
  generationOf,
  generations,
  logHolds,
  markUsed,
  pruneGenerations,
  retireLost,
  useSchema,
} from './generations.ts';
import { type JudgeReceipt, judgeEvents, Projector, readHead } from './projection.ts';
import { cut, readHorizon } from './purge.ts';
import { READ_MODELS, type ReadModel } from './registry.ts';
import { type Db, rowsOf } from './rows.ts';

/** What was asked for cannot be done; nothing was changed. The message is for a person. */
export class CannotRebuild extends OperatorError {}

export type RebuildDeps = {
  readonly log: Pick<EventLog, 'readAll' | 'readStream' | 'head'>;
  readonly store: RebuildStore<Db>;
  readonly judgeReceipt: JudgeReceipt;
  readonly clock: Pick<Clock, 'sleep'>;
};

export type RebuildOptions = {
  readonly models?: readonly ReadModel[];
  /** Compare instead of replacing. */
  readonly check?: boolean;
  /** Events in one transaction. */
  readonly batchSize?: number;
  /** Called at the start and after each transaction. */
  readonly onProgress?: (progress: RebuildProgress) => void;
};

export type RebuildProgress = {
  /** Events handled by this run, twice: other commands may continue an earlier run. */
  readonly events: number;
  readonly eventsHere: number;
  /** 0 to 1; null if unknown. */
  readonly share: number | null;
};

export type RebuildResult = {
  readonly outcome: 'built' | 'equal' | 'different';
  /** Events handled by this run. */
  readonly events: number;
  /** Table → rows, as the rebuild made them. */
  readonly rows: Readonly<Record<string, number>>;
  /** Of a comparison: the tables that differ. */
  readonly different: readonly TableComparison[];
};

const BATCH_EVENTS = 8192;
/** Rows in memory between two transactions. */
const CACHED_ROWS = 100_000;
/** Receipts are verified beside each other: so many at a time. More of them cost this thread more for each. */
const PARALLEL = 8;
const INDEX = /^\s*CREATE INDEX /;
/** A rebuild that was killed may hold its lock until the server has noticed. */
const LOCK = { tries: 20, pauseMs: 100 };
/** Generations that no process has used for this long are dropped by `--prune`; a running service marks its own each minute. */
const UNUSED_MS = 600_000;

type Build = {
  readonly deps: RebuildDeps;
  readonly models: readonly ReadModel[];
  readonly schema: string;
  readonly projector: Projector;
  readonly counted: { events: number };
  readonly options: RebuildOptions;
};

/**
 * Throws `CannotRebuild`, and what store and log throw; the current rows are as they were then. A rebuild that was ended in
 * the middle is continued by the next one.
 */
export async function rebuild(deps: RebuildDeps, options: RebuildOptions = {}): Promise<RebuildResult> {
  const { store, log } = deps;
  const { models = READ_MODELS, check = false } = options;
  const [first] = await log.readAll({ after: null, max: 1 });
  if (first === undefined) throw new CannotRebuild('the event log is empty: nothing to rebuild');
  await store.migrate();
  const generation = generationOf(first.id, store.layout.version, models);
  await takeLock(deps, generation);
  const current = await validCurrent(deps, generation);
  if (check && current === null)
    throw new CannotRebuild('this release has no read models of this event log yet: nothing to compare');
  const schema = await scratchSchema(deps, generation, models, check);
  const head = await inSchema(store, schema, ({ db }) => readHead(db));
  const projector = new Projector(head, { models, cachedRows: CACHED_ROWS });
  const build: Build = { deps, models, schema, projector, counted: { events: 0 }, options };
  report(build, 0);
  if (check && current !== null) {
    // Not beyond the rows that it is compared with.
    const { position } = await inSchema(store, current, ({ db }) => readHead(db));
    await foldTo(build, position ?? '');
    return compared(build, current);
  }
  await foldTo(build, (await log.head()) ?? '');
  await createIndexes(build);
  return flipped(build, generation);
}

/** Drops the generations that no process uses; returns the names of their schemas. */
export async function prune(
  store: RebuildStore<Db>,
  log: Pick<EventLog, 'readAll'>,
  models: readonly ReadModel[] = READ_MODELS,
): Promise<readonly string[]> {
  await store.migrate();
  const [first] = await log.readAll({ after: null, max: 1 });
  const own = first && generationOf(first.id, store.layout.version, models);
  return store.transaction(async ({ db }) => {
    const keep = own === undefined ? null : await currentSchema(db, own);
    return pruneGenerations(db, keep, UNUSED_MS, { lost: true });
  });
}

function inSchema<T>(
  store: RebuildStore<Db>,
  schema: string,
  work: (tx: RebuildTransaction<Db>) => Promise<T>,
  isolation?: 'repeatable read',
): Promise<T> {
  return store.transaction(async (tx) => {
    await useSchema(tx.db, schema);
    return work(tx);
  }, isolation);
}

/** Of the session: one rebuild or check of a generation at a time. */
async function takeLock({ store, clock }: RebuildDeps, { id }: Generation): Promise<void> {
  for (let left = LOCK.tries; left > 0; left--) {
    const [row] = await store.transaction(({ db }) =>
      rowsOf<{ locked: boolean }>(
        db,
        sql`select pg_try_advisory_lock(hashtextextended(${`rebuild ${id}`}, 0)) as locked`,
      ),
    );
    if (row?.locked === true) return;
    await clock.sleep(LOCK.pauseMs);
  }
  throw new CannotRebuild('another rebuild or check is running on this database');
}

/** The schema of the current rows; null: there are none of this log's history. */
async function validCurrent({ store, log }: RebuildDeps, generation: Generation): Promise<string | null> {
  const schema = await store.transaction(({ db }) => currentSchema(db, generation));
  if (schema === null) return null;
  if (await logHolds(log, await inSchema(store, schema, ({ db }) => readHead(db)))) return schema;
  await store.transaction(({ db }) => retireLost(db, schema));
  return null;
}

/** A schema to build in: that of a rebuild which was killed, if its rows are of this history, or a new one. */
async function scratchSchema(
  { store, log }: RebuildDeps,
  generation: Generation,
  models: readonly ReadModel[],
  check: boolean,
): Promise<string> {
  const found = await store.transaction(({ db }) =>
    rowsOf<{ schema: string }>(
      db,
      sql`select "schema" from ${generations} where "generation" = ${generation.id} and "state" = 'building'`,
    ),
  );
  for (const { schema } of found) {
    const head = await inSchema(store, schema, ({ db }) => readHead(db));
    if (!check && (await logHolds(log, head))) return schema;
    await drop(store, schema);
  }
  const statements = store.layout.statements.filter((statement) => !INDEX.test(statement));
  return store.transaction(({ db }) => createGeneration(db, generation, { statements, models }, 'building'));
}

/** Of all rows at once: much less work than with each row that comes. Primary keys are there from the start. */
async function createIndexes({ deps: { store }, schema }: Build): Promise<void> {
  const found = store.layout.statements.filter((statement) => INDEX.test(statement));
  await inSchema(store, schema, async ({ db }) => {
    for (const statement of found)
      await db.execute(sql.raw(statement.replace(INDEX, 'CREATE INDEX IF NOT EXISTS ')));
  });
}

async function drop(store: RebuildStore<Db>, schema: string): Promise<void> {
  await store.transaction(async ({ db }) => {
    await db.execute(sql`delete from ${generations} where "schema" = ${schema}`);
    await db.execute(sql`drop schema ${sql.identifier(schema)} cascade`);
  });
}

type Page = { readonly judged: readonly JudgedEvent[]; readonly last: RecordedEvent; readonly read: number };

/**
 * Every event up to `until` (inclusive); a page is read and judged while the one before is written, each in a transaction
 * of its own unless all are written in `within`.
 */
async function foldTo(build: Build, until: string, within?: RebuildTransaction<Db>): Promise<void> {
  const { deps, schema, projector } = build;
  const pageAfter = (after: string | null) => {
    const page = readPage(build, after, until);
    page.catch(() => undefined);
    return page;
  };
  let next = pageAfter(projector.head.position);
  for (let page = await next; page !== null; page = await next) {
    next = pageAfter(page.last.position);
    const { judged, last, read } = page;
    const write = (tx: RebuildTransaction<Db>) => foldPage(build, tx, judged, last);
    await (within === undefined ? inSchema(deps.store, schema, write) : write(within));
    build.counted.events += read;
    report(build, shareOf(last.position, until));
  }
}

function report({ counted: { events }, options }: Build, share: number | null): void {
  options.onProgress?.({ events, eventsHere: events, share });
}

/** Positions are opaque, but in both logs they begin with a number that grows with the log. */
function shareOf(position: string, until: string): number | null {
  const share = Number.parseInt(position, 10) / Number.parseInt(until, 10);
  return Number.isFinite(share) ? Math.min(1, share) : null;
}

async function foldPage(
  { projector, schema }: Build,
  tx: RebuildTransaction<Db>,
  judged: readonly JudgedEvent[],
  last: RecordedEvent,
): Promise<void> {
  if (await projector.project(tx.db, judged, last, copyBatch(tx, projector.shapes))) return;
  throw new Error(`the schema ${schema} was changed by another process`);
}

/** null: there is no event up to `until`. */
async function readPage(
  { deps: { log, judgeReceipt }, options }: Build,
  after: string | null,
  until: string,
): Promise<Page | null> {
  if ((after ?? '') >= until) return null;
  const max = options.batchSize ?? BATCH_EVENTS;
  const recorded = (await log.readAll({ after, max })).filter(({ position }) => position <= until);
  const last = recorded.at(-1);
  if (last === undefined) return null;
  const width = Math.ceil(recorded.length / PARALLEL);
  const slices = Array.from({ length: PARALLEL }, (_, n) => recorded.slice(n * width, (n + 1) * width));
  const judged = (await Promise.all(slices.map((slice) => judgeEvents(slice, judgeReceipt)))).flat();
  return { judged, last, read: recorded.length };
}

/** Makes the schema current. Its rows reach the position of the current rows first, under a lock that stops their projector. */
async function flipped(build: Build, generation: Generation): Promise<RebuildResult> {
  const { deps, schema } = build;
  await applyHorizon(build, generation);
  // What is left for the transaction is what came during the last turn: little, since the lock holds up readers that wait.
  for (let turn = 0; turn < 3; turn++) await foldTo(build, (await deps.log.head()) ?? '');
  await deps.store.transaction(async (tx) => {
    const { db } = tx;
    await db.execute(sql`set local synchronous_commit = on`);
    const current = await currentSchema(db, generation);
    let until = '';
    if (current !== null) {
      const held = sql`${sql.identifier(current)}.projection`;
      const [row] = await rowsOf<{ position: string | null }>(
        db,
        sql`select position from ${held} for update`,
      );
      until = row?.position ?? '';
      // Who projects into the rows that are replaced finds another version, and then another generation.
      await db.execute(sql`update ${held} set version = version + 1`);
      await db.execute(
        sql`update ${generations} set "state" = 'replaced', "used_at" = now() where "schema" = ${current}`,
      );
    }
    await db.execute(
      sql`update ${generations} set "state" = 'current', "used_at" = now() where "schema" = ${schema}`,
    );
    if (current === null) return;
    await useSchema(db, schema);
    await foldTo(build, until, tx);
    await cut(db, await readHorizon(db, current));
  });
  return { outcome: 'built', events: build.counted.events, rows: await counts(build), different: [] };
}

/**
 * Deletes what is behind the horizon of the current rows, or of those that another release has of this log. What the current
 * ones purge until the flip is deleted in the flip.
 */
async function applyHorizon({ deps, schema, projector }: Build, { id, log }: Generation): Promise<void> {
  await deps.store.transaction(async ({ db }) => {
    await markUsed(db, schema);
    const [from] = await rowsOf<{ schema: string }>(
      db,
      sql`select "schema" from ${generations} where "log" = ${log} and "state" = 'current'
        order by "generation" = ${id} desc, "used_at" desc limit 1`,
    );
    if (from === undefined) return;
    const horizon = await readHorizon(db, from.schema);
    if ((horizon.jobs ?? horizon.receipts) === null) return;
    await useSchema(db, schema);
    await cut(db, horizon);
    projector.forget();
  });
}

async function counts({ deps, schema, projector }: Build): Promise<Record<string, number>> {
  const rows: Record<string, number> = {};
  await deps.store.transaction(async ({ db }) => {
    for (const { name } of projector.shapes) {
      const from = sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
      const [row] = await rowsOf<{ n: number }>(db, sql`select count(*)::int as n from ${from}`);
      rows[name] = row?.n ?? 0;
    }
  });
  return rows;
}

/** In one snapshot, in which the current rows do not change: the last events up to there are folded in it. */
async function compared(build: Build, current: string): Promise<RebuildResult> {
  const { deps, schema, projector, counted } = build;
  const tables = await inSchema(
    deps.store,
    schema,
    async (tx) => {
      const [row] = await rowsOf<{ position: string | null }>(
        tx.db,
        sql`select position from ${sql.identifier(current)}.projection`,
      );
      const until = row?.position ?? '';
      await foldTo(build, until, tx);
      const horizon = await readHorizon(tx.db, current);
      const found: TableComparison[] = [];
      for (const shape of projector.shapes)
        found.push(await compareTable(tx.db, { current, rebuilt: schema }, shape, horizon));
      return found;
    },
    'repeatable read',
  );
  await drop(deps.store, schema);
  const different = tables.filter(({ differing }) => differing > 0);
  return {
    outcome: different.length === 0 ? 'equal' : 'different',
    events: counted.events,
    rows: Object.fromEntries(tables.map(({ table, rows }) => [table, rows])),
    different,
  };
}
