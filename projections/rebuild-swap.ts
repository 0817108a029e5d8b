// The tables beside take the place of the live ones, in one transaction: who reads waits a moment and never sees half.
import { sql } from 'drizzle-orm';
import { type Checkpoint, checkpoints, modelSet } from './checkpoint.ts';
import { type Place, workIn } from './rebuild-lock.ts';
import type { Targets } from './rebuild-target.ts';
import type { ReadModel } from './registry.ts';
import { RETAINED, type retention } from './retention.ts';
import { type Db, rowsOf, type TableShape } from './rows.ts';
import { writeModelVersions } from './versions.ts';

/**
 * Shorter than PostgreSQL's deadlock_timeout (1 s): who reads two of the tables is let through, and not ended. While a
 * lock is waited for, readers wait behind it.
 */
const LOCK_TIMEOUT = '200ms';

export type Swap = {
  readonly place: Place;
  readonly models: readonly ReadModel[];
  readonly shapes: readonly TableShape[];
  readonly targets: Targets;
  readonly origin: string;
  /** Up to where the rows beside were folded. */
  readonly last: Checkpoint | null;
  /** Asked when nobody else can change the live tables any more; throws where they are not to be replaced. */
  readonly stillTrue: () => Promise<void>;
};

/** Under the projector's lock, the rows beside being those of `targets`. Leaves nothing beside. */
export async function swapTables(
  tx: Db,
  { place, models, shapes, targets, origin, last, stillTrue }: Swap,
): Promise<void> {
  await workIn(tx, place, 'live');
  await tx.execute(sql`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true),
    set_config('synchronous_commit', 'on', true)`);
  const live = shapes.map(({ name }) => sql`${sql.identifier(place.live)}.${sql.identifier(name)}`);
  await tx.execute(sql`lock table ${sql.join(live, sql`, `)} in access exclusive mode`);
  await stillTrue();
  const owners = await ownersOf(tx, place, shapes);
  const grants = await grantsOf(tx, place, shapes);
  for (const [n, { name }] of shapes.entries()) {
    await tx.execute(sql`drop table ${live[n]}`);
    await tx.execute(sql`alter table ${sql.identifier(place.beside)}.${sql.identifier(name)}
      set schema ${sql.identifier(place.live)}`);
  }
  for (const statement of [...grants, ...owners]) await tx.execute(sql.raw(statement));
  await writeModelVersions(tx, models);
  await writeCheckpoints(tx, targets, origin, last);
  await dropRest(tx, place);
}

/** Checkpoints that there are tell of rows at the very same positions and stay. */
async function writeCheckpoints(
  tx: Db,
  { foreign, untold, of }: Targets,
  origin: string,
  last: Checkpoint | null,
): Promise<void> {
  if (foreign) await tx.execute(sql`delete from ${checkpoints}`);
  if (foreign) await tx.execute(sql`delete from "retention"`);
  const [first] = untold;
  if (first === undefined) return;
  const set = modelSet(untold);
  const position = of.get(first.name);
  const event = last?.position === position ? (last?.event ?? null) : null;
  await tx.execute(sql`insert into ${checkpoints} ("id", "position", "origin", "event")
    values (${set}, ${position}, ${origin}, ${event})
    on conflict ("id") do update set "position" = excluded."position", "origin" = excluded."origin",
      "event" = excluded."event"`);
}

/** What others were granted on the live tables, as statements for the new ones. */
async function grantsOf(tx: Db, place: Place, shapes: readonly TableShape[]): Promise<readonly string[]> {
  const names = shapes.map(({ name }) => sql`${name}`);
  const found = await rowsOf<{ statement: string }>(
    tx,
    sql`select format('grant %s on table %I.%I to %s%s', a.privilege_type, n.nspname, c.relname,
        case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end,
        case when a.is_grantable then ' with grant option' else '' end) as "statement"
      from pg_class c join pg_namespace n on n.oid = c.relnamespace cross join lateral aclexplode(c.relacl) a
      where n.nspname = ${place.live} and c.relname in (${sql.join(names, sql`, `)}) and a.grantee <> c.relowner`,
  );
  return found.map(({ statement }) => statement);
}

/** Whose the live tables are, where it is not who rebuilds, as statements for the new ones. */
async function ownersOf(tx: Db, place: Place, shapes: readonly TableShape[]): Promise<readonly string[]> {
  const names = shapes.map(({ name }) => sql`${name}`);
  const found = await rowsOf<{ statement: string }>(
    tx,
    sql`select format('alter table %I.%I owner to %I', n.nspname, c.relname, pg_get_userbyid(c.relowner)) as "statement"
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = ${place.live} and c.relname in (${sql.join(names, sql`, `)})
        and pg_get_userbyid(c.relowner) <> current_user`,
  );
  return found.map(({ statement }) => statement);
}

/** Without `cascade`: what something live depends on is not dropped, and the swap does not happen. */
async function dropRest(tx: Db, place: Place): Promise<void> {
  const rest = await rowsOf<{ name: string }>(
    tx,
    sql`select tablename as name from pg_tables where schemaname = ${place.beside}`,
  );
  for (const { name } of rest) {
    await tx.execute(sql`drop table ${sql.identifier(place.beside)}.${sql.identifier(name)}`);
  }
  await tx.execute(sql`drop schema ${sql.identifier(place.beside)}`);
}

export type Horizon = Pick<typeof retention.$inferSelect, 'jobsBefore' | 'receiptsBefore'>;

/** As far as the live rows were purged; `workIn(…, 'live')` comes before. */
export async function readHorizon(tx: Db, { foreign }: Pick<Targets, 'foreign'>): Promise<Horizon> {
  // Of the rows of another history: it goes with them.
  if (foreign) return { jobsBefore: null, receiptsBefore: null };
  const [row] = await rowsOf<{ jobs: string | null; receipts: string | null }>(
    tx,
    sql`select "jobs_before" as jobs, "receipts_before" as receipts from "retention" where "id" = 'live'`,
  );
  return { jobsBefore: row?.jobs ?? null, receiptsBefore: row?.receipts ?? null };
}

/** Table → which of its rows are gone at this horizon, for those where some are. */
export function goneAt(horizon: Horizon): ReadonlyMap<string, ReturnType<typeof sql>> {
  const found = RETAINED.flatMap(({ table, time, ended, horizon: name }) => {
    const before = name === 'jobs' ? horizon.jobsBefore : horizon.receiptsBefore;
    return before === null ? [] : [[table, sql`(${ended} and ${sql.identifier(time)} < ${before})`] as const];
  });
  return new Map(found);
}

/** Deletes what is behind the horizon from the tables beside, and tells how many rows of which table went. */
export async function applyHorizon(
  tx: Db,
  place: Place,
  shapes: readonly TableShape[],
  horizon: Horizon,
): Promise<ReadonlyMap<string, number>> {
  await workIn(tx, place, 'beside');
  const gone = new Map<string, number>();
  for (const [table, where] of goneAt(horizon)) {
    if (!shapes.some(({ name }) => name === table)) continue;
    const [row] = await rowsOf<{ gone: number }>(
      tx,
      sql`with gone as (delete from ${sql.identifier(table)} where ${where} returning 1)
        select count(*)::int as gone from gone`,
    );
    gone.set(table, row?.gone ?? 0);
  }
  return gone;
}

/**
 * Rows that were told behind the horizon, after the purge moved it, go with the live tables: counted as purged, as the
 * next purge would have.
 */
export async function countLate(tx: Db, shapes: readonly TableShape[], horizon: Horizon): Promise<void> {
  for (const [table, where] of goneAt(horizon)) {
    if ((table !== 'jobs' && table !== 'receipts') || !shapes.some(({ name }) => name === table)) continue;
    const column = sql.identifier(`${table}_purged`);
    await tx.execute(sql`update "retention" set ${column} = ${column} + (select count(*) from ${sql.identifier(table)}
      where ${where}) where "id" = 'live'`);
  }
}
