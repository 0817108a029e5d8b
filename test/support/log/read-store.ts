// Read stores for tests: empty rows in the embedded one or in PostgreSQL, and a runner over them.
import { deepEqual, ok } from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import {
  createGeneration,
  currentSchema,
  type GenerationStore,
  generationOf,
  pruneGenerations,
} from '#projections/generations.ts';
import type { ReadModel } from '#projections/model.ts';
import { Projector } from '#projections/projector.ts';
import { type ReadModels, readModels } from '#projections/read-models.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, mayDelete, rowsOf, tableShapes } from '#projections/rows.ts';
import type { ProjectorOptions } from '#projections/sessions.ts';
import { retention } from '#projections/table.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { judgeBySignature, newEvent } from '#test/support/given/job-histories.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { type MemoryLog, memoryLog } from './memory-log.ts';
import { type PostgresServer, postgresServer } from './postgres.ts';
import { asStored, rowsAfter } from './read-model-rows.ts';

const nothing = () => undefined;
export const silent: Logger = {
  info: nothing,
  warn: nothing,
  error: nothing,
  bug: nothing,
  condition: nothing,
};

export type ReadStoreHarness = {
  readonly name: 'pglite' | 'postgres';
  readonly needs: { readonly skip: boolean };
  /** How many cases a property is tried with: fewer where the other store tries the most. */
  runs(count: number): number;
  /** A store without any generation. */
  fresh(): Promise<ReadStore<Db>>;
  /** The same rows from another process, where the store has several. */
  again(): Promise<ReadStore<Db>>;
  /** Frees all that `fresh` gave. */
  end(): Promise<void>;
};

/** One embedded store, emptied for each test: opening one takes half a second. */
export function pgliteHarness(): ReadStoreHarness {
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-pglite-'));
  let store: ReadStore<Db> | null = null;
  return {
    name: 'pglite',
    needs: { skip: false },
    runs: (count) => runs(count / 3),
    async fresh() {
      store ??= pgliteReadStore({ directory: join(dataDir, 'read-models'), logger: silent });
      await dropGenerations(store);
      return store;
    },
    again: () => Promise.reject(new Error('an embedded store serves one process')),
    async end() {
      await store?.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A database of its own for each test. */
export function postgresHarness(needs: { readonly skip: boolean }): ReadStoreHarness {
  const stores: ReadStore<Db>[] = [];
  let server: Promise<PostgresServer> | null = null;
  let url = '';
  const opened = async () => {
    const store = postgresReadStore({ url, connections: 4 });
    stores.push(store);
    return store;
  };
  return {
    name: 'postgres',
    needs,
    runs,
    async fresh() {
      server ??= postgresServer();
      url = await (await server).newDatabase();
      return opened();
    },
    again: opened,
    async end() {
      for (const store of stores) await store.close();
      await (await server)?.remove();
    },
  };
}

/** A log that begins with an event of no model, the same for each: all of them share a generation, which is quick to empty. */
export async function commonLog(): Promise<MemoryLog> {
  const log = memoryLog();
  const id = '00000000-0000-4000-8000-000000000000';
  await log.append('job-other', 'no_stream', [{ ...newEvent({ type: 'SomethingElse', data: {} }), id }]);
  return log;
}

/** Takes all rows away, as if nothing was projected yet. */
export async function emptyRows(db: Db): Promise<void> {
  const tables = [...tableShapes(READ_MODELS).map(({ name }) => name), 'retention'];
  await db.transaction(async (tx) => {
    await mayDelete(tx);
    await tx.execute(sql.raw(`truncate ${tables.join(', ')}`));
    await tx.execute(sql`update projection
      set position = null, event = null, counts = '{}', loss = null, version = version + 1`);
  });
}

/** The handle of the log's rows; creates their generation if there is none. The log has an event at least. */
export async function rowsFor(
  log: Pick<EventLog, 'readAll'>,
  store: ReadStore<Db>,
  models: readonly ReadModel[] = READ_MODELS,
): Promise<Db> {
  const [first] = await log.readAll({ after: null, max: 1 });
  if (first === undefined) throw new Error('an empty log has no generation');
  const generation = generationOf(first.id, store.layout.version, models);
  const { statements } = store.layout;
  const shared = await store.shared();
  const schema = await shared.transaction((tx) =>
    createGeneration(tx, generation, { statements, models }, 'current'),
  );
  return store.open(schema);
}

/** Takes all read models away. */
export async function dropGenerations(store: ReadStore<Db>): Promise<void> {
  const shared = await store.shared();
  while ((await shared.transaction((tx) => pruneGenerations(tx, null, 0))).length > 0);
}

/** The schema of the log's rows; null: there are none. */
export async function schemaOf(log: Pick<EventLog, 'readAll'>, store: ReadStore<Db>): Promise<string | null> {
  const [first] = await log.readAll({ after: null, max: 1 });
  return currentSchema(
    await store.shared(),
    generationOf(first?.id ?? '', store.layout.version, READ_MODELS),
  );
}

/** Projects all that the log has; returns the handle of the rows. */
export async function project(
  log: EventLog,
  store: ReadStore<Db>,
  options: ProjectorOptions = {},
): Promise<Db> {
  const runner = runnerOver(log, store, options);
  const head = await log.head();
  const reached = head === null || (await runner.caughtUp(head, 20_000));
  await runner.stop();
  if (!reached) throw new Error('the rows did not reach the head of the log');
  return rowsFor(log, store, options.models);
}

/** For tests that look at rows while no process projects. */
export const modelsOver = (db: Db): ReadModels =>
  readModels({
    store: { open: async () => db },
    clock: systemClock(),
    logger: silent,
    ready: async () => true,
  });

/** The horizon and what the purge took; zero and null before the first purge. */
export async function retentionOf(db: Db): Promise<Omit<typeof retention.$inferSelect, 'id'>> {
  const [row] = await db.select().from(retention);
  const { id: _, ...kept } = row ?? {
    id: '',
    jobsBefore: null,
    receiptsBefore: null,
    jobsPurged: 0,
    receiptsPurged: 0,
  };
  return kept;
}

/** Every row of every read model, in order, as the database has it. */
export async function allRows(db: Db): Promise<Record<string, readonly unknown[]>> {
  const all: Record<string, readonly unknown[]> = {};
  for (const { name, key } of tableShapes(READ_MODELS)) {
    const found = await rowsOf<{ row: unknown }>(
      db,
      sql.raw(`select to_jsonb(t) as row from ${name} t order by t.${key} collate "C"`),
    );
    all[name] = found.map(({ row }) => row);
  }
  return all;
}

/** The rows of a log by the pure fold, as `allRows` reads them from a store. */
export const folded = async (log: MemoryLog) => asStored(await rowsAfter(log.events));

/** The store has the rows of the log, and no other. */
export async function assertFolded(log: MemoryLog, store: ReadStore<Db>): Promise<void> {
  deepEqual(await allRows(await rowsFor(log, store)), await folded(log));
}

/** Only a hanging test waits so long. */
export const PATIENCE_MS = 60_000;

/** Waits until the rows are at this position. */
export async function reached(runner: Projector, position: string | null): Promise<void> {
  ok(await runner.caughtUp(position ?? '', PATIENCE_MS));
}

/** The read models over a runner, as a process serves them. */
export const servedBy = (runner: Projector): ReadModels =>
  readModels({ store: runner, clock: systemClock(), logger: silent, ready: () => runner.ready() });

export function runnerOver(
  log: EventLog,
  store: GenerationStore,
  options: ProjectorOptions & { readonly logger?: Logger; readonly now?: () => number } = {},
): Projector {
  const { logger = silent, now = Date.now, ...rest } = options;
  const clock = { ...systemClock(), now };
  return new Projector({ log, store, judgeReceipt: judgeBySignature, clock, logger }, rest);
}
