// `relay rebuild`: builds this release's generation from the event log, beside the current one if there is one, and flips
// the pointer to it; or builds a scratch one and compares. Reads continue meanwhile.

import { sql } from 'drizzle-orm';
import { OperatorError } from '#src/lib/operator-error.ts';
import { compareTable, type TableComparison } from './compare.ts';
import {
  createGeneration,
  currentSchema,
  type Generation,
  type GenerationStore,
  generationOf,
  generations,
  hasRetired,
  logHolds,
  markUsed,
  pruneGenerations,
  retire,
  useSchema,
} from './generations.ts';
import { RowsDoubted, RowsMoved } from './live-generation.ts';
import type { ReadModel } from './model.ts';
import { isBefore } from './progress.ts';
import { type ProjectionHead, readHead } from './projection.ts';
import { cut, readHorizon } from './purge.ts';
import { READ_MODELS } from './registry.ts';
import { type CopyRows, type Db, rowsOf, tableShapes } from './rows.ts';
import { Session } from './session.ts';
import type { ProjectorDeps } from './sessions.ts';

/** What was asked for cannot be done; nothing was changed. The message is for a person. */
export class CannotRebuild extends OperatorError {}

export type RebuildOptions = {
  readonly models?: readonly ReadModel[];
  /** Compare instead of replacing. */
  readonly check?: boolean;
  /** Events in one transaction. */
  readonly batchSize?: number;
  /** Called at the start and after each transaction. `events`: so many were handled by this run. */
  readonly onProgress?: (events: number, position: string | null, head: string | null) => void;
};

export type RebuildResult = {
  readonly outcome: 'built' | 'equal' | 'different';
  /** Events handled by this run. */
  readonly events: number;
  /** Table → rows, as the rebuild made them. */
  readonly rows: Readonly<Record<string, number>>;
  /** Of a comparison: the tables that differ. */
  readonly different: readonly TableComparison[];
  /** Of a comparison; null: no rows were lost. */
  readonly healing: Healing | null;
};

/**
 * What a running service does about rows that were lost. `deleted`: they are noted as missing, and all are built again.
 * `behind`: those that took their place have not reached the end of the event log, as it was when the comparison began.
 */
export type Healing = 'deleted' | 'behind';

const BATCH_EVENTS = 4096;
const INDEX = /^\s*CREATE INDEX /;
/** A rebuild that was killed may hold its lock until the server has noticed. */
const LOCK = { tries: 20, pauseMs: 100 };
/** Generations that no process has used for this long are dropped by `--prune`; a running service marks its own each minute. */
const UNUSED_MS = 600_000;

/**
 * Throws `CannotRebuild`, and what store and log throw; the current rows are as they were then. A rebuild that was ended in
 * the middle is continued by the next one.
 */
export async function rebuild(deps: ProjectorDeps, options: RebuildOptions = {}): Promise<RebuildResult> {
  const { store, log } = deps;
  const { models = READ_MODELS, check = false } = options;
  const [first] = await log.readAll({ after: null, max: 1 });
  if (first === undefined) throw new CannotRebuild('the event log is empty: nothing to rebuild');
  const generation = generationOf(first.id, store.layout.version, models);
  return alone(deps, generation, async () => {
    const goal = await log.head();
    const current = await validCurrent(deps, generation);
    if (check && current === null) throw new CannotRebuild(await whyNone(store, generation));
    const schema = await scratchSchema(deps, generation, models, check);
    const build = buildIn(deps, options, schema, await headIn(store, schema));
    if (!check || current === null) return flipped(build, generation);
    return compared(build, generation, current, goal).catch(async (cause: unknown) => {
      const isHere = (await currentSchema(await store.shared(), generation)) === current;
      throw isHere ? cause : new CannotRebuild(REPLACED, { cause });
    });
  });
}

const REPLACED =
  'the read models were incomplete, or contained events that the event log lacks, and were replaced: a running service builds new ones; run it again when readModels is ok in /health';

const whyNone = async (store: GenerationStore, generation: Generation): Promise<string> =>
  (await hasRetired(await store.shared(), generation))
    ? REPLACED
    : 'this release has no read models of this event log yet: nothing to compare';

const CHANGED = 'the event log or the rows were changed meanwhile: run it again';

type Build = ReturnType<typeof buildIn>;

/** What projects into a schema beside the current one, whose rows are at `head`. */
function buildIn(deps: ProjectorDeps, options: RebuildOptions, schema: string, head: ProjectionHead) {
  const { models = READ_MODELS, batchSize = BATCH_EVENTS, onProgress } = options;
  const { store, log } = deps;
  const { copyRows } = store;
  const copy = copyRows === undefined ? null : (...given: Parameters<CopyRows>) => copyRows(schema, ...given);
  const state = { position: head.position, events: 0 };
  const isCurrent = async () => {
    await markUsed(await store.shared(), schema);
    // A subscription waits while the log is unavailable; a person does not.
    await log.head();
    return true;
  };
  /** Projects up to the event at `end`. If the rows contain it, no query is made: an embedded store may be locked. */
  async function reach(end: string | null): Promise<void> {
    if (!isBefore(state.position, end)) return;
    onProgress?.(state.events, state.position, end);
    const db = await store.open(schema);
    const rows = { schema, db, head: await readHead(db) };
    const session = new Session(rows, {
      ...deps,
      models,
      copy,
      batchSize,
      until: end,
      progress: null,
      purge: null,
      isCurrent,
      onBarrier(barrier) {
        throw barrier;
      },
      onBatch(events, position) {
        state.events += events;
        state.position = position;
        onProgress?.(state.events, state.position, end);
      },
      onCheck: () => undefined,
    });
    try {
      await session.run();
    } catch (error) {
      if (!(error instanceof RowsDoubted || error instanceof RowsMoved)) throw error;
      throw error.cause ?? new CannotRebuild(CHANGED);
    }
  }
  return { deps, models, schema, reach, events: () => state.events };
}

/** Drops the generations that no process uses; returns the names of their schemas. */
export async function prune(
  store: GenerationStore,
  log: Pick<ProjectorDeps['log'], 'readAll'>,
  models: readonly ReadModel[] = READ_MODELS,
): Promise<readonly string[]> {
  const shared = await store.shared();
  const [first] = await log.readAll({ after: null, max: 1 });
  const own = first && generationOf(first.id, store.layout.version, models);
  return shared.transaction(async (tx) => {
    const keep = own === undefined ? null : await currentSchema(tx, own);
    return pruneGenerations(tx, keep, UNUSED_MS, { lost: true });
  });
}

/** One rebuild or check of a generation at a time. An embedded store has one process only. */
async function alone<T>(
  { store, clock }: ProjectorDeps,
  { id }: Generation,
  work: () => Promise<T>,
): Promise<T> {
  if (store.disposable) return work();
  return (await store.shared()).transaction(async (tx) => {
    await mayWait(tx);
    for (let left = LOCK.tries; left > 0; left--) {
      const [row] = await rowsOf<{ locked: boolean }>(
        tx,
        sql`select pg_try_advisory_xact_lock(hashtextextended(${`rebuild ${id}`}, 0)) as locked`,
      );
      if (row?.locked === true) return work();
      await clock.sleep(LOCK.pauseMs);
    }
    throw new CannotRebuild('another rebuild or check is running on this database');
  });
}

/** The transaction waits for what happens outside of it. */
const mayWait = (tx: Db) => tx.execute(sql`set local idle_in_transaction_session_timeout = 0`);

/** In a transaction, statements may take as long as they need. */
async function inSchema<T>(store: GenerationStore, schema: string, work: (tx: Db) => Promise<T>): Promise<T> {
  return (await store.shared()).transaction(async (tx) => {
    await tx.execute(sql`set local statement_timeout = 0`);
    await useSchema(tx, schema);
    return work(tx);
  });
}

const headIn = (store: GenerationStore, schema: string): Promise<ProjectionHead> =>
  inSchema(store, schema, readHead);

/** The schema of the current rows; null: there are none of this log's history. */
async function validCurrent({ store, log }: ProjectorDeps, generation: Generation): Promise<string | null> {
  const shared = await store.shared();
  const schema = await currentSchema(shared, generation);
  if (schema === null || (await logHolds(log, await headIn(store, schema)))) return schema;
  await shared.transaction((tx) => retire(tx, schema, 'lost'));
  return null;
}

/** A schema to build in: that of a rebuild which was killed, if its rows are of this history, or a new one. */
async function scratchSchema(
  { store, log }: ProjectorDeps,
  generation: Generation,
  models: readonly ReadModel[],
  check: boolean,
): Promise<string> {
  const shared = await store.shared();
  const found = await rowsOf<{ schema: string }>(
    shared,
    sql`select "schema" from ${generations} where "generation" = ${generation.id} and "state" = 'building'`,
  );
  for (const { schema } of found) {
    const head = await headIn(store, schema);
    if (!check && head.loss === null && (await logHolds(log, head))) return schema;
    await drop(shared, schema);
  }
  const statements = store.layout.statements.filter((statement) => !INDEX.test(statement));
  return shared.transaction((tx) => createGeneration(tx, generation, { statements, models }, 'building'));
}

async function drop(shared: Db, schema: string): Promise<void> {
  await shared.transaction(async (tx) => {
    await tx.execute(sql`delete from ${generations} where "schema" = ${schema}`);
    await tx.execute(sql`drop schema ${sql.identifier(schema)} cascade`);
  });
}

/** Makes the schema current. Its rows reach the position of the current rows first, under a lock that stops their projector. */
async function flipped(build: Build, generation: Generation): Promise<RebuildResult> {
  const { schema, models } = build;
  const { log, store } = build.deps;
  await build.reach(await log.head());
  // Nothing is projected meanwhile: a batch and the indexes would wait for each other's tables.
  await createIndexes(build);
  await applyHorizon(build, generation);
  // What is left for the transaction is little, since the lock holds up readers that wait.
  await build.reach(await log.head());
  if ((await headIn(store, schema)).loss !== null) throw new CannotRebuild(CHANGED);
  await (await store.shared()).transaction(async (tx) => {
    await mayWait(tx);
    const current = await currentSchema(tx, generation);
    if (current !== null) {
      await build.reach(await lockPosition(tx, current));
      // Who projects into the rows that are replaced finds another version, and then another generation.
      await tx.execute(sql`update ${sql.identifier(current)}.projection set version = version + 1`);
      await tx.execute(
        sql`update ${generations} set "state" = 'replaced', "used_at" = now() where "schema" = ${current}`,
      );
    }
    await tx.execute(
      sql`update ${generations} set "state" = 'current', "used_at" = now() where "schema" = ${schema}`,
    );
    if (current === null) return;
    await useSchema(tx, schema);
    await cut(tx, await readHorizon(tx, current));
  });
  const { counts } = await headIn(store, schema);
  const rows = tableShapes(models).map(({ name }) => [name, counts[name] ?? 0]);
  return {
    outcome: 'built',
    events: build.events(),
    rows: Object.fromEntries(rows),
    different: [],
    healing: null,
  };
}

/** Position of the rows in `schema`, which stand still until the transaction `tx` ends. */
async function lockPosition(tx: Db, schema: string): Promise<string | null> {
  const [row] = await rowsOf<{ position: string | null }>(
    tx,
    sql`select position from ${sql.identifier(schema)}.projection for update`,
  );
  return row?.position ?? null;
}

/** Of all rows at once: much less work than with each row that comes. Primary keys are there from the start. */
async function createIndexes({ deps: { store }, schema }: Build): Promise<void> {
  const found = store.layout.statements.filter((statement) => INDEX.test(statement));
  await inSchema(store, schema, async (tx) => {
    for (const statement of found)
      await tx.execute(sql.raw(statement.replace(INDEX, 'CREATE INDEX IF NOT EXISTS ')));
  });
}

/**
 * Deletes what is behind the horizon of the current rows, or of those that another release has of this log. What the current
 * ones purge until the flip is deleted in the flip.
 */
async function applyHorizon({ deps: { store }, schema }: Build, { id, log }: Generation): Promise<void> {
  const [from] = await rowsOf<{ schema: string }>(
    await store.shared(),
    sql`select "schema" from ${generations} where "log" = ${log} and "state" = 'current'
      order by "generation" = ${id} desc, "used_at" desc limit 1`,
  );
  if (from === undefined) return;
  await inSchema(store, schema, async (tx) => {
    const horizon = await readHorizon(tx, from.schema);
    if ((horizon.jobs ?? horizon.receipts) !== null) await cut(tx, horizon);
  });
}

/** In one snapshot, taken while the current rows stand still at the position of the others. `goal`: the log's head before. */
async function compared(
  build: Build,
  generation: Generation,
  current: string,
  goal: string | null,
): Promise<RebuildResult> {
  const { deps, schema } = build;
  const shared = await deps.store.shared();
  // What is left for the lock is little, since it holds up the projector of the current rows.
  for (let times = 0; times < 3; times++) await build.reach((await headIn(deps.store, current)).position);
  const tables = await shared.transaction(async (lock) => {
    await mayWait(lock);
    await build.reach(await lockPosition(lock, current));
    if (deps.store.disposable) return compareTables(lock, build, current);
    const taken = Promise.withResolvers<void>();
    const comparing = shared.transaction(
      async (tx) => {
        await tx.execute(sql`set local statement_timeout = 0`);
        await readHorizon(tx, current);
        taken.resolve();
        return compareTables(tx, build, current);
      },
      { isolationLevel: 'repeatable read' },
    );
    await Promise.race([taken.promise, comparing]);
    return { comparing };
  });
  const found = 'comparing' in tables ? await tables.comparing : tables;
  const head = await headIn(deps.store, current);
  const isBehind = isBefore(head.position, goal) && (await hasRetired(shared, generation));
  await drop(shared, schema);
  const different = found.filter(({ differing }) => differing > 0);
  return {
    outcome: different.length === 0 ? 'equal' : 'different',
    events: build.events(),
    rows: Object.fromEntries(found.map(({ table, rows }) => [table, rows])),
    different,
    healing: head.loss !== null ? 'deleted' : isBehind ? 'behind' : null,
  };
}

async function compareTables(tx: Db, { models, schema }: Build, current: string): Promise<TableComparison[]> {
  const horizon = await readHorizon(tx, current);
  const found: TableComparison[] = [];
  for (const shape of tableShapes(models))
    found.push(await compareTable(tx, { current, rebuilt: schema }, shape, horizon));
  return found;
}
