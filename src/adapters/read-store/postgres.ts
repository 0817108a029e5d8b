// The shared read store: Postgres by postgres.js, for any number of processes. A pool for each generation in use, whose
// connections have its schema for a search path, and a small one for the tables that belong to none.
import { pipeline } from 'node:stream/promises';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { succeedsWithin, withTimeout } from '#src/lib/time.ts';
import type { ReadStore } from '../../ports/read-store.ts';
import { DrizzleClient } from './drizzle-client.ts';
import { isMigrated, sharedMigrations, tableLayout } from './migrations.ts';
import { demandSessions, refusalOf } from './postgres-refusals.ts';
import { PostgresSessions, type SessionSettings } from './postgres-sessions.ts';

export type PostgresOptions = {
  /** `postgres://…` */
  readonly url: string;
  readonly connections?: number;
  /** ms after which the connections of a generation close, if another one was opened since. */
  readonly unusedMs?: number;
  /** ms after which a COPY has failed. */
  readonly copyMs?: number;
};

/** Any 64-bit number: migrations run one process at a time. */
const MIGRATION_LOCK = '125779768603954';
const HEALTH_MS = 1000;
/** For an opening in progress to end, and then for the connections to close. */
const CLOSE_MS = 5000;
/** Longer than any query runs (`statement_timeout`). */
const LONGEST_MS = 15_000;
/** The quota sends its calls in batches. */
const SHARED_CONNECTIONS = 4;

export function postgresReadStore({
  url,
  connections = 10,
  unusedMs = LONGEST_MS,
  copyMs = LONGEST_MS,
}: PostgresOptions): ReadStore<PostgresJsDatabase> {
  const shared = poolOf(url, SHARED_CONNECTIONS, null);
  const generations = new GenerationPools((schema) => poolOf(url, connections, schema), unusedMs);
  let opening: Promise<void> | null = null;
  /** What the last opening failed with. */
  let refused: string | null = null;

  async function migrated(): Promise<void> {
    opening ??= migrateOnce(url).then(
      () => {
        refused = null;
      },
      (error) => {
        opening = null;
        refused = refusalOf(error);
        throw error;
      },
    );
    await opening;
  }
  return {
    disposable: false,
    layout: tableLayout(),
    async shared() {
      await migrated();
      return shared.db;
    },
    async open(schema) {
      await migrated();
      return generations.of(schema).db;
    },
    async copyRows(schema, { sql, params }, rows) {
      await migrated();
      return generations.of(schema).client.begin(async (transaction) => {
        const [row] = await transaction.unsafe(sql, params as never[]).values();
        if (row?.[0] !== true) return false;
        for (const { table, columns, text } of rows) {
          const names = columns.map((column) => `"${column}"`).join(', ');
          const copying = await transaction.unsafe(`copy "${table}" (${names}) from stdin`).writable();
          await withTimeout(pipeline(partsOf(text), copying), copyMs, () => new CopyUnanswered());
        }
        return true;
      });
    },
    async health() {
      const late = () => new Error(`no answer within ${HEALTH_MS} ms`);
      const failure = await withTimeout(shared.sessions.query('select 1'), HEALTH_MS, late).then(
        () => null,
        refusalOf,
      );
      const refusal = failure ?? refused;
      return refusal === null ? { ok: true } : { ok: false, refusal };
    },
    async close() {
      // A migration may wait for another process's, or for a server that does not answer.
      const under = opening;
      if (under !== null) await succeedsWithin(CLOSE_MS, under);
      await Promise.all([shared.sessions.end(), generations.end()]);
    },
  };
}

/**
 * postgres.js 3.4.9 sends no Sync after the error of a COPY, for which the server then waits, without end if it has received
 * more of the rows meanwhile. The connection counts as lost.
 */
class CopyUnanswered extends Error {
  readonly code = 'ETIMEDOUT';
}

/** The driver copies what the socket has not taken for each part that it takes. */
const PART_BYTES = 131_072;

function* partsOf(text: string): Generator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES);
}

type Pools = {
  readonly sessions: PostgresSessions;
  readonly client: DrizzleClient;
  readonly db: PostgresJsDatabase;
};

type Open = { readonly pools: Pools; closing?: ReturnType<typeof setTimeout> };

/** A few generations at once: while a rebuild flips, readers and the projector open the old one and the new one in turns. */
class GenerationPools {
  readonly #make: (schema: string) => Pools;
  readonly #unusedMs: number;
  /** By schema. */
  readonly #open = new Map<string, Open>();
  readonly #ending = new Set<Promise<void>>();
  /** The schema that was opened last. */
  #last = '';

  constructor(make: (schema: string) => Pools, unusedMs: number) {
    this.#make = make;
    this.#unusedMs = unusedMs;
  }

  of(schema: string): Pools {
    const opened = this.#open.get(schema) ?? { pools: this.#make(schema) };
    if (schema === this.#last) return opened.pools;
    const before = this.#open.get(this.#last);
    if (before !== undefined) this.#closeLater(this.#last, before);
    clearTimeout(opened.closing);
    this.#open.set(schema, opened);
    this.#last = schema;
    return opened.pools;
  }

  async end(): Promise<void> {
    for (const [schema, opened] of this.#open) this.#close(schema, opened);
    await Promise.all(this.#ending);
  }

  /** Not at once: queries that have its handle already still get their answers. */
  #closeLater(schema: string, opened: Open): void {
    opened.closing = setTimeout(() => this.#close(schema, opened), this.#unusedMs);
    opened.closing.unref();
  }

  #close(schema: string, { pools, closing }: Open): void {
    clearTimeout(closing);
    this.#open.delete(schema);
    const ended = pools.sessions.end().finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }
}

function poolOf(url: string, connections: number, schema: string | null): Pools {
  const path = schema === null ? {} : { search_path: `"${schema}"` };
  const sessions = new PostgresSessions(url, { ...SETTINGS, ...path }, connections);
  const client = new DrizzleClient(sessions);
  return { sessions, client, db: drizzle(client.sql) };
}

/** Set on each connection. */
export const SETTINGS = {
  statement_timeout: 10_000,
  // Frees the rows that a purge holds when its process is frozen: another projects again within 10 s.
  idle_in_transaction_session_timeout: 5000,
  // A prepared plan outlives the table's growth: made while the table was empty it would always read
  // the whole of it. Every statement of ours has its index; without this a replay of 40,000 events spends a third in
  // scans.
  enable_seqscan: 'off',
  // Where the planner takes a window's share of a table for large, it plans at each call: with 10^6 jobs the counts of a
  // day would take three times as long.
  plan_cache_mode: 'force_generic_plan',
  // Compiling costs more than any of these statements takes.
  jit: 'off',
} satisfies SessionSettings;

/** On a connection of its own, so that the lock and the settings of long statements end with it. */
export async function migrateOnce(url: string): Promise<void> {
  const { statement_timeout: _, ...settings } = SETTINGS;
  const sessions = new PostgresSessions(url, settings, 1);
  try {
    await demandSessions(sessions, url);
    await sessions.query(`select pg_advisory_lock(${MIGRATION_LOCK})`);
    if (await isMigrated((query) => sessions.query(query))) return;
    await migrate(drizzle(new DrizzleClient(sessions).sql), sharedMigrations());
  } finally {
    // Ends the session, and with it the lock.
    await sessions.end();
  }
}
