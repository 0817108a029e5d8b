// The sealed texts of a shared deployment: a table of the shared Postgres that belongs to no generation, as that of the quotas.
import { eq, inArray, lt, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { customType, index, numeric, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { withTimeout } from '#src/lib/time.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import type { Vault } from '#src/ports/vault.ts';
import { sealedVault, type TextStore } from './sealed.ts';

type Db = PgDatabase<PgQueryResultHKT>;

const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' });

export const vaultKeys = pgTable(
  'vault_keys',
  {
    id: text().primaryKey(),
    key: bytea().notNull(),
    /** null: the event log has it, from a release that stored it there. */
    sealed: bytea(),
    /** After this it may be deleted. */
    until: timestamp({ withTimezone: true }).notNull(),
    /** Whose texts are counted; null: it is not. */
    holder: text(),
    /** What a counted one is worth; null: it was stored by a release that did not record it. */
    amount: numeric(),
  },
  (table) => [index('vault_keys_until').on(table.until), index('vault_keys_holder').on(table.holder)],
);

const ANSWER_MS = 2000;

/** `open`: the database, migrated. `answerMs`: how long a query is waited for. */
export function postgresVault({
  open,
  keyedHash,
  answerMs = ANSWER_MS,
}: {
  readonly open: () => Promise<Db>;
  readonly keyedHash: KeyedHash;
  readonly answerMs?: number;
}): Vault {
  const ask = <T>(query: (db: Db) => PromiseLike<T>): Promise<T> =>
    withTimeout(
      open().then((db) => query(db)),
      answerMs,
      () => new Error('no answer in time'),
    );
  const counted = async (db: Db, holder: string) => {
    const { amount } = vaultKeys;
    const rows = await db.select({ amount }).from(vaultKeys).where(eq(vaultKeys.holder, holder));
    return rows.map((row) => row.amount);
  };
  const store: TextStore = {
    async insert({ name: id, key, sealed, untilMs, seat }) {
      const until = new Date(untilMs);
      const row = {
        id,
        key,
        sealed,
        until,
        holder: seat?.holder ?? null,
        amount: seat?.amount.toString() ?? null,
      };
      const insert = (db: Db) => db.insert(vaultKeys).values(row).onConflictDoNothing();
      if (seat === null) return void (await ask(insert));
      await ask((db) =>
        db.transaction(async (tx) => {
          // One insert of a holder at a time: each counts those before it.
          await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${seat.holder}, 0))`);
          if ((await counted(tx, seat.holder)).length < seat.max) await insert(tx);
        }),
      );
    },
    async find(id) {
      const [row] = await ask((db) => db.select().from(vaultKeys).where(eq(vaultKeys.id, id)));
      return row ?? null;
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
  };
  return sealedVault(store, keyedHash);
}
