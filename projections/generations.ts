// Generations of read models. A generation is one complete set of tables in a schema of its own, named by the log's first
// event, the migrations, the models' versions and the events' versions that are read: another release or another log never
// shares a table with this one.
import { sql } from 'drizzle-orm';
import { pgTable, text, timestamp, uniqueIndex } from 'drizzle-orm/pg-core';
import type { Damage } from '../src/domain/damage.ts';
import type { RecordedEvent } from '../src/domain/event-codec.ts';
import { READ_VERSIONS } from '../src/domain/event-versions.ts';
import { EventDamaged, type EventLog } from '../src/ports/event-log.ts';
import type { ReadStore } from '../src/ports/read-store.ts';
import type { ReadModel } from './model.ts';
import { type Db, rowFunctions, rowsOf, tableShapes } from './rows.ts';

/** A row for each schema. All processes and releases on this database share the table. */
export const generations = pgTable(
  'read_model_generations',
  {
    schema: text().primaryKey(),
    generation: text().notNull(),
    /** Id of the log's first event. */
    log: text().notNull(),
    /**
     * `current`: read and projected into. `building`: a rebuild that has not finished. `replaced`: a rebuild has taken its
     * place. `lost`: its rows contain events that are missing from the log. `incomplete`: rows were taken from it.
     */
    state: text().$type<'current' | 'building' | 'replaced' | 'lost' | 'incomplete'>().notNull(),
    /** The database's time at which a process last used it; only the pruning reads it. */
    usedAt: timestamp('used_at', { withTimezone: true }).notNull(),
  },
  (table) => [
    uniqueIndex('read_model_generations_current').on(table.generation).where(sql`${table.state} = 'current'`),
  ],
);

/** Changes whenever the functions of `rowFunctions`, or how rows are folded, change without a migration. */
const PROJECTOR_VERSION = 6;

export type Generation = {
  /** Equal for equal log, migrations, models and events' versions. */
  readonly id: string;
  /** Id of the log's first event. */
  readonly log: string;
};

export function generationOf(
  firstEventId: string,
  migrations: string,
  models: readonly Pick<ReadModel, 'name' | 'version'>[],
  events = READ_VERSIONS,
): Generation {
  const versions = models.map(({ name, version }) => `${name}:${version}`).sort();
  return {
    id: [firstEventId, migrations, PROJECTOR_VERSION, ...versions, events].join(' '),
    log: firstEventId,
  };
}

/** The schema that holds the generation's rows; null if there is none yet. */
export async function currentSchema(shared: Db, { id }: Generation): Promise<string | null> {
  const [row] = await rowsOf<{ schema: string }>(
    shared,
    sql`select "schema" from ${generations} where "generation" = ${id} and "state" = 'current'`,
  );
  return row?.schema ?? null;
}

/**
 * Creates the generation's tables, empty, in a new schema and returns its name; if another process has created the current
 * ones meanwhile, returns theirs. `tx`: a transaction.
 */
export async function createGeneration(
  tx: Db,
  generation: Generation,
  { statements, models }: { readonly statements: readonly string[]; readonly models: readonly ReadModel[] },
  state: 'current' | 'building',
): Promise<string> {
  const { id, log } = generation;
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${id}, 0))`);
  const current = state === 'current' ? await currentSchema(tx, generation) : null;
  if (current !== null) return current;
  const [named] = await rowsOf<{ schema: string; path: string }>(
    tx,
    sql`select 'relay_' || substr(md5(${id}), 1, 12) || '_' || to_hex(txid_current()) as "schema",
      current_setting('search_path') as "path"`,
  );
  if (named === undefined) throw new Error('a query without a table has one row');
  const { schema, path } = named;
  await tx.execute(sql`insert into ${generations} ("schema", "generation", "log", "state", "used_at")
    values (${schema}, ${id}, ${log}, ${state}, now())`);
  await tx.execute(sql`create schema ${sql.identifier(schema)}`);
  await useSchema(tx, schema);
  for (const statement of [...statements, ...rowFunctions(tableShapes(models))])
    await tx.execute(sql.raw(statement));
  await tx.execute(sql`insert into projection (id, version, counts) values ('all', 0, '{}')`);
  await tx.execute(sql`select set_config('search_path', ${path}, true)`);
  return schema;
}

/** From here on, in this transaction, tables without a schema are those of `schema`. */
export async function useSchema(tx: Db, schema: string): Promise<void> {
  await tx.execute(sql`select set_config('search_path', ${`"${schema}"`}, true)`);
}

/**
 * Takes a generation out of use: its schema is renamed, so that no process can read it any more, and a new generation
 * takes its place. It is kept until it is pruned, for the checkpoint in it. `tx`: a transaction.
 */
export async function retire(tx: Db, schema: string, state: 'lost' | 'incomplete'): Promise<void> {
  const name = `${schema}_${state}`;
  const moved = await rowsOf<{ exists: boolean }>(
    tx,
    sql`update ${generations} set "state" = ${state}, "schema" = ${name}
      where "schema" = ${schema} returning to_regnamespace(format('%I', ${schema}::text)) is not null as "exists"`,
  );
  if (moved[0]?.exists)
    await tx.execute(sql`alter schema ${sql.identifier(schema)} rename to ${sql.identifier(name)}`);
}

/**
 * Notes of the newest checkpoints in the other generations of this log, those of a lost history among them. Throws if one
 * cannot be read, also if it is pruned meanwhile: what is not read cannot contradict the event log.
 */
export async function checkpointsElsewhere(
  shared: Db,
  { log }: Generation,
  schema: string,
): Promise<readonly string[]> {
  // A release without a transparency log has no such table.
  const others = await rowsOf<{ schema: string }>(
    shared,
    sql`select "schema" from ${generations} where "log" = ${log} and "schema" <> ${schema}
      and to_regclass(format('%I.transparency_checkpoint', "schema")) is not null`,
  );
  const notes: string[] = [];
  for (const other of others) {
    const from = sql`${sql.identifier(other.schema)}.transparency_checkpoint`;
    const found = await rowsOf<{ note: string }>(shared, sql`select note from ${from} where id = 'last'`);
    notes.push(...found.map(({ note }) => note));
  }
  return notes;
}

/** Whether rows of the generation were taken out of use, which others take the place of; until they are pruned. */
export async function hasRetired(shared: Db, { id }: Generation): Promise<boolean> {
  const found = await rowsOf(
    shared,
    sql`select from ${generations} where "generation" = ${id} and "state" in ('lost', 'incomplete') limit 1`,
  );
  return found.length > 0;
}

export async function markUsed(shared: Db, schema: string): Promise<void> {
  await shared.execute(sql`update ${generations} set "used_at" = now() where "schema" = ${schema}`);
}

/** So many schemas in one transaction, which locks all their tables. */
const PRUNED_AT_ONCE = 10;

/**
 * Drops the schemas that no process has used for `unusedMs`, but for `keep` and those of a lost history, whose checkpoint is
 * the evidence until the operator decides; returns their names. `lost`: those too, and those whose rows were taken, at once.
 * `tx`: a transaction.
 */
export async function pruneGenerations(
  tx: Db,
  keep: string | null,
  unusedMs: number,
  { lost = false } = {},
): Promise<readonly string[]> {
  const deleted = await rowsOf<{ schema: string }>(
    tx,
    sql`delete from ${generations} where "schema" in (select "schema" from ${generations}
      where "schema" is distinct from ${keep}::text
        and ("used_at" <= clock_timestamp() - ${unusedMs}::float8 * interval '1 millisecond' and "state" <> 'lost'
          or ${lost} and "state" in ('lost', 'incomplete'))
      order by "used_at" limit ${PRUNED_AT_ONCE} for update skip locked) returning "schema"`,
  );
  for (const { schema } of deleted)
    await tx.execute(sql`drop schema if exists ${sql.identifier(schema)} cascade`);
  return deleted.map(({ schema }) => schema);
}

/** `<revision> <id> <stream>`: identifies an event, also against another event at the same position. */
export const eventMark = ({
  revision,
  id,
  stream,
}: Pick<RecordedEvent, 'revision' | 'id' | 'stream'>): string => `${revision} ${id} ${stream}`;

const isAt = (position: string, { from, to, problem }: Damage): boolean =>
  problem !== 'missing' && from <= position && position <= to;

/**
 * Returns whether the log holds the event at a projection position. If not, the rows belong to another history: a restored
 * backup has the same first event, and may have grown beyond the position since. Throws what a read of the log throws.
 */
export async function logHolds(
  log: Pick<EventLog, 'readStream'>,
  { position, event }: { readonly position: string | null; readonly event: string | null },
): Promise<boolean> {
  if (position === null) return true;
  const [, revision = '', stream = ''] = /^(\d+) \S+ (.+)$/s.exec(event ?? '') ?? [];
  if (stream === '') return false;
  try {
    const [found] = await log.readStream(stream, { from: BigInt(revision), max: 1 });
    return found?.position === position && eventMark(found) === event;
  } catch (error) {
    // An event is there, and its bytes say nothing: the rows were made while they did.
    if (error instanceof EventDamaged && isAt(position, error.damage)) return true;
    throw error;
  }
}

export type GenerationStore = Pick<ReadStore<Db>, 'shared' | 'open' | 'layout' | 'disposable' | 'copyRows'>;
