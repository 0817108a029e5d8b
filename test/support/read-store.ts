// Read stores for tests: empty rows in the embedded one or in PostgreSQL, and a runner over them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, rowsOf, tableShapes } from '#projections/rows.ts';
import { type ProjectionRunner, type RunnerOptions, startProjections } from '#projections/runner.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { judgeBySignature } from './job-histories.ts';
import { type PostgresServer, postgresServer } from './postgres.ts';
import { givePristine } from './pristine.ts';

export const silent: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

export type ReadStoreHarness = {
  readonly name: 'pglite' | 'postgres';
  readonly needs: { readonly skip: boolean };
  /** A store without any row. */
  fresh(): Promise<ReadStore<Db>>;
  /** Frees all that `fresh` gave. */
  end(): Promise<void>;
};

/** One embedded store, emptied for each test: to make one takes seconds. */
export function pgliteHarness(): ReadStoreHarness {
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-pglite-'));
  givePristine(dataDir);
  let store: ReadStore<Db> | null = null;
  return {
    name: 'pglite',
    needs: { skip: false },
    async fresh() {
      store ??= pgliteReadStore({ directory: join(dataDir, 'read-models'), logger: silent });
      await emptyRows(await store.open());
      return store;
    },
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
  return {
    name: 'postgres',
    needs,
    async fresh() {
      server ??= postgresServer();
      const store = postgresReadStore({ url: await (await server).newDatabase(), connections: 4 });
      stores.push(store);
      return store;
    },
    async end() {
      for (const store of stores) await store.close();
      await (await server)?.remove();
    },
  };
}

const tableNames = [
  ...tableShapes(READ_MODELS).map(({ name }) => name),
  'checkpoints',
  'retention',
  'model_versions',
];

export async function emptyRows(db: Db): Promise<void> {
  await db.execute(sql.raw(`truncate ${tableNames.join(', ')}`));
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

export function runnerOver(
  log: EventLog,
  store: Pick<ReadStore<Db>, 'open' | 'disposable'>,
  options: RunnerOptions & { readonly logger?: Logger; readonly now?: () => number } = {},
): ProjectionRunner {
  const { logger = silent, now = Date.now, ...rest } = options;
  const clock = { ...systemClock(), now };
  return startProjections({ log, store, judgeReceipt: judgeBySignature, clock, logger }, rest);
}
