// What a rebuild refuses before it has done anything, and once more where it matters before it swaps.
import { sql } from 'drizzle-orm';
import type { RebuildStore } from '#src/ports/rebuild-store.ts';
import { readCheckpoints } from './checkpoint.ts';
import { CannotRebuild } from './rebuild-lock.ts';
import type { Targets } from './rebuild-target.ts';
import { READ_MODELS, type ReadModel } from './registry.ts';
import { type Db, rowsOf, type TableShape } from './rows.ts';
import { isNewer, readVersionGaps } from './versions.ts';

/** The tables beside are made by this version's migrations: in the place of a newer schema its columns would be gone. */
export async function refuseNewerSchema(
  store: Pick<RebuildStore<Db>, 'liveSchema'>,
  db: Db,
): Promise<'older' | 'this'> {
  const live = await store.liveSchema(db);
  if (live === 'newer')
    throw new CannotRebuild(
      'the database is at the schema of a newer version of relay: rebuild with that one',
    );
  return live;
}

/** Of any model: rows that newer processes write are not for this version to judge, or to put others beside. */
export async function refuseNewerRows(db: Db, models: readonly ReadModel[]): Promise<void> {
  const others = READ_MODELS.filter(({ name }) => models.every((model) => model.name !== name));
  const { told } = await readCheckpoints(db);
  const newer = (await readVersionGaps(db, [...models, ...others], told)).filter(isNewer);
  if (newer.length > 0) {
    const names = newer.map(({ model }) => model).join(', ');
    throw new CannotRebuild(`a newer version of relay has told the rows (${names}): rebuild with that one`);
  }
}

const OF_OTHER_LOG = 'the live rows are of another event log';

/** With a URL or a directory forgotten, the rows of a whole cluster would go. `meant`: the operator has said so. */
export function refuseOtherLog({ ofOtherLog }: Pick<Targets, 'ofOtherLog'>, meant: boolean): void {
  if (ofOtherLog && !meant)
    throw new CannotRebuild(
      `${OF_OTHER_LOG}: check EVENTSTORE_URL, DATA_DIR and DATABASE_URL, or say --other-log`,
    );
}

/** Rows of another history can only go as a whole, and there is nothing of them to compare. */
export function refuseForeign({ foreign, ofOtherLog, untold, of }: Targets, check: boolean): void {
  const whose = ofOtherLog
    ? OF_OTHER_LOG
    : 'the live rows tell what the event log does not have, as after the restore of an older backup';
  const isPart = READ_MODELS.some(({ name }) => !of.has(name));
  if (foreign && (check || isPart)) throw new CannotRebuild(`${whose}: rebuild all models`);
  if (check && untold.length > 0)
    throw new CannotRebuild(
      'the live rows are not told from this event log yet: there is nothing to compare',
    );
}

type Abilities = {
  readonly user: string;
  readonly database: string;
  readonly schema: string | null;
  readonly schemas: boolean;
  readonly tables: boolean | null;
};

/** What the database would refuse, some of it only at the end. `check`: only compares. */
export async function refuseUnable(db: Db, shapes: readonly TableShape[], check: boolean): Promise<void> {
  const [can] = await rowsOf<Abilities>(
    db,
    sql`select current_user::text as "user", current_database()::text as "database", current_schema()::text as "schema",
      has_database_privilege(current_database(), 'create') as "schemas",
      has_schema_privilege(current_schema(), 'create') as "tables"`,
  );
  if (can === undefined) throw new Error('a query without a table has one row');
  const { user, database, schema } = can;
  if (!can.schemas)
    throw new CannotRebuild(`the user ${user} may not make a schema in the database ${database}`);
  if (check) return;
  if (can.tables === false)
    throw new CannotRebuild(`the user ${user} may not make tables in the schema ${schema}`);
  const names = shapes.map(({ name }) => sql`${name}`);
  const [others] = await rowsOf<{ name: string; owner: string }>(
    db,
    sql`select c.relname::text as "name", pg_get_userbyid(c.relowner)::text as "owner"
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = current_schema() and c.relname in (${sql.join(names, sql`, `)})
        and not pg_has_role(current_user, c.relowner, 'member') order by 1 limit 1`,
  );
  if (others !== undefined)
    throw new CannotRebuild(
      `the table ${others.name} is of the user ${others.owner}, and ${user} may not replace it: rebuild as that user`,
    );
}
