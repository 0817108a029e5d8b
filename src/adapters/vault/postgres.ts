// The keys of a shared deployment: a table of the shared Postgres that belongs to no generation, as that of the quotas.
import { count, eq, inArray, lt, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { customType, index, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { withTimeout } from '#src/lib/time.ts';
import type { Vault } from '#src/ports/vault.ts';
import { sealedVault } from './sealed.ts';

type Db = PgDatabase<PgQueryResultHKT>;

const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' });

export const vaultKeys = pgTable(
  'vault_keys',
  {
    id: text().primaryKey(),
    key: bytea().notNull(),
    /** After this it may be deleted. */
    until: timestamp({ withTimezone: true }).notNull(),
    /** Whose keys are counted; null: it is not. */
    holder: text(),
  },
  (table) => [index('vault_keys_until').on(table.until), index('vault_keys_holder').on(table.holder)],
);

const ANSWER_MS = 2000;

/** `open`: the database, migrated. `answerMs`: how long a query is waited for. */
export function postgresVault({
  open,
  answerMs = ANSWER_MS,
}: {
  readonly open: () => Promise<Db>;
  readonly answerMs?: number;
}): Vault {
  const ask = <T>(query: (db: Db) => PromiseLike<T>): Promise<T> =>
    withTimeout(
      open().then((db) => query(db)),
      answerMs,
      () => new Error('no answer in time'),
    );
  const counted = async (db: Db, holder: string) => {
    const [row] = await db.select({ keys: count() }).from(vaultKeys).where(eq(vaultKeys.holder, holder));
    return row?.keys ?? 0;
  };
  return sealedVault({
    async insert({ name: id, key, untilMs, seat }) {
      const row = { id, key, until: new Date(untilMs), holder: seat?.holder ?? null };
      const insert = (db: Db) => db.insert(vaultKeys).values(row).onConflictDoNothing();
      if (seat === null) return void (await ask(insert));
      await ask((db) =>
        db.transaction(async (tx) => {
          // One insert of a holder at a time: each counts those before it.
          await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${seat.holder}, 0))`);
          if ((await counted(tx, seat.holder)) < seat.max) await insert(tx);
        }),
      );
    },
    async find(id) {
      const [row] = await ask((db) => db.select().from(vaultKeys).where(eq(vaultKeys.id, id)));
      return row?.key ?? null;
    },
    held: (holder) => ask((db) => counted(db, holder)),
    async delete(ids) {
      await ask((db) => db.delete(vaultKeys).where(inArray(vaultKeys.id, [...ids])));
    },
    async names() {
      const rows = await ask((db) => db.select({ id: vaultKeys.id }).from(vaultKeys));
      return rows.map(({ id }) => id);
    },
    async deleteEnded() {
      await ask((db) => db.delete(vaultKeys).where(lt(vaultKeys.until, sql`now()`)));
    },
    async now() {
      const [row] = await ask((db) =>
        db
          .select({ now: sql<number>`extract(epoch from now()) * 1000`.mapWith(Number) })
          .from(sql`(select 1) one`),
      );
      return row?.now ?? null;
    },
    close: async () => undefined,
  });
}
