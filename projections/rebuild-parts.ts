// How rows beside the current ones are projected: by one session, or in parts beside each other. Each part has a position of
// its own until all have reached the same end; there their sums are added up, and one position takes the place of theirs.
import { sql } from 'drizzle-orm';
import { OperatorError } from '#src/lib/operator-error.ts';
import { Cancel } from '#src/lib/time.ts';
import { markUsed } from './generations.ts';
import { RowsDoubted, RowsMoved } from './live-generation.ts';
import type { ReadModel } from './model.ts';
import { headOf, type Part, sumSuffix } from './parts.ts';
import { isBefore } from './progress.ts';
import { type ProjectionHead, readHead } from './projection.ts';
import { type Db, mayDelete, quoted, rowsOf, type TableShape, tableShapes } from './rows.ts';
import { Session } from './session.ts';
import type { ProjectorDeps } from './sessions.ts';

/** What was asked for cannot be done; nothing was changed. The message is for a person. */
export class CannotRebuild extends OperatorError {}

/** Rows to project, up to the event at `until`. */
export type RowsToBuild = {
  readonly schema: string;
  readonly part: Part;
  readonly until: string;
  readonly batchSize: number;
};
export type OnBatch = (events: number, position: string) => void;

/** Throws `CannotRebuild` if rows or log were changed meanwhile, and what store and log throw. */
export async function projectTo(
  deps: ProjectorDeps & { readonly models: readonly ReadModel[] },
  { schema, part, until, batchSize }: RowsToBuild,
  onBatch: OnBatch,
  ending = new Cancel(),
): Promise<void> {
  const { store, log } = deps;
  const db = await store.open(schema);
  const { copyRows } = store;
  const session = new Session(
    { schema, db, head: await readHead(db, part) },
    {
      ...deps,
      part,
      copy: copyRows === undefined ? null : (...given) => copyRows(schema, ...given),
      batchSize,
      until,
      progress: null,
      purge: null,
      async isCurrent() {
        await markUsed(await store.shared(), schema);
        // A subscription waits while the log is unavailable; a person does not.
        await log.head();
        return true;
      },
      onBarrier(barrier) {
        throw barrier;
      },
      onBatch,
      onCheck: () => undefined,
    },
  );
  ending.addEventListener('abort', () => session.end());
  if (ending.aborted) session.end();
  try {
    await session.run();
  } catch (error) {
    if (!(error instanceof RowsDoubted || error instanceof RowsMoved)) throw error;
    const changed = 'the event log or the rows were changed meanwhile: run it again';
    throw error.cause ?? new CannotRebuild(changed);
  }
}

// ── parts ────────────────────────────────────────────────────────────────────────────────────────────

/** Projects a part, in this thread or in another; ends early, without an error, at `ending`. */
export type BuildPart = (rows: RowsToBuild, onBatch: OnBatch, ending: Cancel) => Promise<void>;

type FoundPart = { readonly part: Part; readonly head: ProjectionHead };

/** The rows of `schema`, which are empty, are built in so many parts. */
export async function makeParts(tx: Db, schema: string, count: number): Promise<void> {
  for (let index = 0; index < count && count > 1; index++)
    await tx.execute(sql`insert into ${sql.identifier(schema)}.projection (id, version, counts)
      values (${headOf({ index, of: count })}, 0, '{}')`);
}

/** `db`: the rows' handle. Those that are not complete yet; none: the rows have one position. */
export async function partsIn(db: Db): Promise<readonly FoundPart[]> {
  const found = await rowsOf<{ id: string }>(
    db,
    sql`select id from projection where id <> 'all' order by id`,
  );
  const parts = found.map(({ id }) => {
    const [index, count] = id.split('/').map(Number);
    return { index: index ?? 0, of: count ?? 0 };
  });
  return Promise.all(parts.map(async (part) => ({ part, head: await readHead(db, part) })));
}

/** Ends with the first error of a part, when the others have ended. */
export async function buildParts(
  found: readonly FoundPart[],
  rows: Omit<RowsToBuild, 'part'>,
  { workers, build }: { readonly workers: number; readonly build: BuildPart },
  onBatch: (events: number, position: string | null) => void,
): Promise<void> {
  const states = found.map(({ part, head }) => ({ part, position: head.position, events: 0 }));
  const left = states.filter(({ position }) => isBefore(position, rows.until));
  const ending = new Cancel();
  const note = () => {
    const [last] = [...states].sort((a, b) => (isBefore(a.position, b.position) ? -1 : 1));
    onBatch(Math.max(...states.map(({ events }) => events)), last?.position ?? null);
  };
  note();
  const worker = async () => {
    for (let state = left.shift(); state !== undefined && !ending.aborted; state = left.shift()) {
      const own = state;
      const advance: OnBatch = (events, position) => {
        own.events += events;
        own.position = position;
        note();
      };
      await build({ ...rows, part: own.part }, advance, ending);
    }
  };
  const ended = await Promise.allSettled(
    Array.from({ length: Math.min(workers, left.length) }, () =>
      worker().catch((error: unknown) => {
        ending.abort();
        throw error;
      }),
    ),
  );
  for (const { reason } of ended.filter((end) => end.status === 'rejected')) throw reason;
}

/** Parts that have all reached the same end become one. `tx`: a transaction, whose search path is the rows' schema. */
export async function joinParts(tx: Db, models: readonly ReadModel[]): Promise<void> {
  const found = await partsIn(tx);
  const [first] = found;
  if (first === undefined) return;
  await mayDelete(tx);
  const counts: Record<string, number> = {};
  for (const { head } of found)
    for (const [table, count] of Object.entries(head.counts)) counts[table] = (counts[table] ?? 0) + count;
  for (const shape of tableShapes(models.map(({ sums = [] }) => ({ tables: sums }))))
    counts[shape.name] = await addUp(tx, shape, first.part.of);
  const { position, event } = first.head;
  await tx.execute(sql`update projection set version = version + 1, position = ${position}, event = ${event},
    counts = ${JSON.stringify(counts)}::text::json where id = 'all'`);
  await tx.execute(sql`delete from projection where id <> 'all'`);
}

/** Returns how many rows the table has then. */
async function addUp(tx: Db, { name, key, columns }: TableShape, parts: number): Promise<number> {
  const [table, own] = [quoted(name), quoted(key)];
  const named = `left(${own}, -${sumSuffix(0).length})`;
  const suffixes = Array.from({ length: parts }, (_, index) => `k || '${sumSuffix(index)}'`).join(', ');
  const others = columns.filter((column) => column.name !== key);
  const added = others.map(({ name, type }) => {
    const cell = quoted(name);
    if (type === 'text') return `max(${cell} collate "C") as ${cell}`;
    return type.endsWith('[]') ? 'null' : `sum(${cell})::${type} as ${cell}`;
  });
  const cells = others.map(({ name, type }) => {
    const cell = quoted(name);
    if (!type.endsWith('[]')) return cell;
    // By the primary key: the table may have rows for each minute of years.
    return `(select array_agg(added::${type.slice(0, -2)} order by place)
      from (select place, sum(number) as added
        from ${table} part, unnest(part.${cell}) with ordinality places (number, place)
        where part.${own} in (${suffixes}) group by place) of_places)`;
  });
  const names = others.map((column) => quoted(column.name)).join(', ');
  const [row] = await rowsOf<{ count: number }>(
    tx,
    sql.raw(`with sums as (
      insert into ${table} (${own}, ${names}) select k, ${cells.join(', ')}
        from (select ${named} as k, ${added.join(', ')} from ${table} group by 1) grouped returning 1)
      select count(*)::int as count from sums`),
  );
  await tx.execute(sql.raw(`delete from ${table} where substr(${own}, length(${own}) - 2, 1) = chr(31)`));
  return row?.count ?? 0;
}
