// A log in memory, live rows over it and rebuilds beside them: on PostgreSQL, or embedded.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type RebuildOptions, type RebuildResult, rebuild } from '#projections/rebuild.ts';
import { type Db, rowsOf } from '#projections/rows.ts';
import type { RunnerOptions } from '#projections/runner.ts';
import { pgliteRebuildStore } from '#src/adapters/read-store/pglite-rebuild.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { postgresRebuildStore } from '#src/adapters/read-store/postgres-rebuild.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import type { RebuildStore } from '#src/ports/rebuild-store.ts';
import { judgeBySignature } from './job-histories.ts';
import { type PostgresServer, postgresServer } from './postgres.ts';
import { emptyRows, runnerOver, silent } from './read-store.ts';

/** Only a hanging test meets it. */
const PATIENCE_MS = 20_000;

/** A store's rows, and how they are rebuilt. */
export type Rebuilt = {
  /** Of the live rows. */
  readonly store: ReadStore<Db>;
  readonly url: string;
  rebuild(log: EventLog, options?: RebuildOptions): Promise<RebuildResult>;
};

export type RebuildHarness = {
  readonly name: string;
  readonly needs: { readonly skip: boolean };
  /** Without any row. */
  fresh(): Promise<Rebuilt>;
  end(): Promise<void>;
};

export function postgresRebuilds(needs: { readonly skip: boolean }): RebuildHarness {
  const ends: (() => Promise<void>)[] = [];
  let server: Promise<PostgresServer> | null = null;
  return {
    name: 'postgres',
    needs,
    async fresh() {
      server ??= postgresServer();
      const url = await (await server).newDatabase();
      const store = postgresReadStore({ url, connections: 4 });
      ends.push(() => store.close());
      return {
        store,
        url,
        rebuild: (log, options) => rebuildWith(postgresRebuildStore({ url }), log, options),
      };
    },
    async end() {
      for (const end of ends) await end();
      await (await server)?.remove();
    },
  };
}

/** One directory for all: to make one takes seconds. The rebuild's own handle is the live one: there is no second. */
export function pgliteRebuilds(): RebuildHarness {
  const directory = mkdtempSync(join(tmpdir(), 'relay-rebuild-'));
  let held: RebuildStore<Db> | null = null;
  return {
    name: 'pglite',
    needs: { skip: false },
    async fresh() {
      held ??= pgliteRebuildStore({ directory, logger: silent });
      const kept = held;
      const db = await openOf(kept);
      await emptyRows(db);
      return {
        store: storeOver(db),
        url: '',
        rebuild: (log, options) => rebuildWith({ ...kept, close: async () => undefined }, log, options),
      };
    },
    async end() {
      await held?.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Outside of the transaction that gave it: of the one handle that there is. */
async function openOf(store: RebuildStore<Db>): Promise<Db> {
  await store.migrate();
  return handleOver(store);
}

function handleOver(store: RebuildStore<Db>): Db {
  const inTransaction = <T>(work: (tx: Db) => Promise<T>) => store.transaction(({ db }) => work(db));
  return {
    execute: (statement: Parameters<Db['execute']>[0]) =>
      inTransaction(async (tx) => await tx.execute(statement)),
    transaction: inTransaction,
  } as unknown as Db;
}

const storeOver = (db: Db): ReadStore<Db> => ({
  driver: 'pglite',
  disposable: true,
  open: async () => db,
  health: async () => ({ ok: true }),
  close: async () => undefined,
});

/** As PostgreSQL's, with something that happens before its nth transaction. */
export function storeBefore(
  url: string,
  nth: number,
  happen: (store: RebuildStore<Db>) => Promise<void>,
): RebuildStore<Db> {
  const store = postgresRebuildStore({ url });
  let count = 0;
  return {
    ...store,
    async transaction(work, isolation) {
      count++;
      if (count === nth) await happen(store);
      return store.transaction(work, isolation);
    },
  };
}

export async function rebuildWith(
  store: RebuildStore<Db>,
  log: EventLog,
  options: RebuildOptions = {},
): Promise<RebuildResult> {
  try {
    const deps = { log, store, judgeReceipt: judgeBySignature, clock: systemClock() };
    return await rebuild(deps, options);
  } finally {
    await store.close();
  }
}

/** Live rows up to the log's head. */
export async function project(
  log: EventLog,
  store: ReadStore<Db>,
  options: RunnerOptions = {},
): Promise<void> {
  const head = await log.head();
  if (head === null) return;
  const runner = runnerOver(log, store, options);
  const reached = await runner.caughtUp(head, PATIENCE_MS);
  await runner.stop();
  if (!reached) throw new Error('the rows did not catch up');
}

/** Tables, columns, indexes and constraints of the live schema, by name, and what each of them is. */
export async function schemaOf(db: Db): Promise<readonly unknown[]> {
  return await rowsOf(
    db,
    sql`select c.relname as name, c.relkind as kind, coalesce(pg_get_indexdef(c.oid), (
        select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull, ', ' order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)) as definition
      from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'i')
      union all select conname, 'c', pg_get_constraintdef(oid) from pg_constraint
      where connamespace = current_schema()::regnamespace order by 1, 2`,
  );
}

/** Schemas that a rebuild has left behind. */
export async function leftovers(db: Db): Promise<readonly string[]> {
  const ask = sql`select nspname as name from pg_namespace where nspname like '%rebuild'`;
  return (await rowsOf<{ name: string }>(db, ask)).map(({ name }) => name);
}
