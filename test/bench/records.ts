// Read models of any number of jobs on Postgres. The first jobs come from an event log, by the rebuild. The others are
// copies of their rows that SQL makes, under ids of their own, one job every 10 s up to now: as many rows, of the same
// sizes, in the same tables and indexes as a projection leaves. Their events are not in the log, so only reads of rows are
// measured on them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { READ_MODELS } from '#projections/registry.ts';
import { tableShapes } from '#projections/rows.ts';
import { rebuildReadModels } from '#src/app/rebuild.ts';
import { readConfig } from '#src/config.ts';
import { postgresServer } from '#test/support/log/postgres.ts';
import { type Filled, fillSignedLog } from './signed-log.ts';

/** Tables whose rows are counts of the rows of other tables. */
const COUNTED = [
  'monitoring_minutes',
  'monitoring_hours',
  'monitoring_totals',
  'trust_minutes',
  'trust_totals',
];

/** Tables that keep the rows of the rebuild: no read of a measure depends on their size. */
const KEPT = [
  ...['decisions', 'running_jobs', 'revoked_keys', 'trust_open_payments'],
  ...['transparency_tree', 'transparency_tiles', 'transparency_checkpoint', 'schedules', 'schedule_runs'],
  ...['open_payments', 'unconfirmed_charges', 'refused_payments', 'paid_jobs', 'payment_sums', 'chain_books'],
];

/** Tables with a row for each job, and the column of its time. */
const PER_JOB = [
  { table: 'receipts', time: 'signed_at' },
  { table: 'jobs', time: 'created_at' },
  { table: 'proofs', time: 'created_at' },
  { table: 'transparency_leaves', time: null },
] as const;

const TIMES: ReadonlySet<string> = new Set(['created_at', 'updated_at', 'completed_at', 'signed_at']);
const IDS: ReadonlySet<string> = new Set(['id', 'job_id', 'receipt_id']);

export type Records = {
  readonly url: string;
  readonly schema: string;
  readonly jobs: number;
  /** A sample of the ids, spread over all jobs. */
  readonly ids: readonly { readonly job: string; readonly receipt: string }[];
};

/** The event log whose jobs are copied, and the server of the databases: measures of one run share them. */
type World = {
  readonly dataDir: string;
  readonly server: Awaited<ReturnType<typeof postgresServer>>;
  readonly records: Map<number, Promise<Records>>;
  /** Its jobs, which are the ones that are copied. */
  readonly first: Filled;
  /** With what the measure of the rebuild has appended since. */
  filled: Filled;
};

/** Jobs of the largest database, by the size of the run: P4 and P7 share it. */
export const LARGEST = [1_000_000, 20_000, 4000] as const;

/** About 1,150 jobs. */
const LOG_EVENTS = 5000;

let world: Promise<World> | null = null;

export function recordsWorld(): Promise<World> {
  world ??= makeWorld();
  return world;
}

async function makeWorld(): Promise<World> {
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-bench-'));
  const server = await postgresServer();
  const first = await fillSignedLog(dataDir, LOG_EVENTS);
  return { dataDir, server, records: new Map(), first, filled: first };
}

/** For the results: what the rows are. */
export const copiesNote = ({ first: { jobs } }: World): string =>
  `Of the jobs in Postgres, ${jobs} are rebuilt from an event log; the others, with their proofs, receipts and leaves, are copies made by SQL under ids and times of their own.`;

/** A database with the rows of so many jobs. */
export async function recordsOf(jobs: number): Promise<Records> {
  const { records, dataDir, server } = await recordsWorld();
  const made = records.get(jobs) ?? server.newDatabase().then((url) => makeRecords(dataDir, url, jobs));
  records.set(jobs, made);
  return made;
}

export async function removeRecords(): Promise<void> {
  if (world === null) return;
  const { dataDir, server } = await world;
  world = null;
  await server.remove();
  rmSync(dataDir, { recursive: true, force: true });
}

/** `dataDir`: of a filled event log with fewer than `jobs` jobs; `url`: of an empty database. */
async function makeRecords(dataDir: string, url: string, jobs: number): Promise<Records> {
  await rebuildReadModels(readConfig({ DATA_DIR: dataDir, DATABASE_URL: url }), {});
  const schema = await currentSchema(url);
  const connection = { search_path: `"${schema}"`, work_mem: '256MB', maintenance_work_mem: '1GB' };
  const client = postgres(url, { max: 2, connection, onnotice: () => undefined });
  try {
    await client.unsafe(`create unlogged table base as select row_number() over (order by created_at) as n,
      now() at time zone 'utc' as made_at, * from jobs`);
    const [base] = await client<{ n: number }[]>`select count(*)::int as n from base`;
    const copies = { base: base?.n ?? 0, wanted: jobs };
    // An index that is built at the end takes half the time.
    const indexes = await client<{ name: string; definition: string }[]>`
      select indexname as name, indexdef as definition from pg_indexes
      where schemaname = ${schema} and indexname !~ '_pkey$'`;
    for (const { name } of indexes) await client.unsafe(`drop index "${name}"`);
    const handled = [...PER_JOB.map(({ table }) => table), ...COUNTED, ...KEPT];
    const missing = tableShapes(READ_MODELS).filter(({ name }) => !handled.includes(name));
    if (missing.length > 0) throw new Error(`not filled: ${missing.map(({ name }) => name).join(', ')}`);
    // Two at a time.
    await Promise.all(PER_JOB.map(({ table, time }) => client.unsafe(copiesOf(table, time, copies))));
    for (const { definition } of indexes) await client.unsafe(definition);
    await client.unsafe(counts(jobs));
    await client.unsafe(NOTED);
    await client.unsafe('drop table base');
    await client.unsafe('analyze');
    const found = await client<{ job: string; receipt: string }[]>`
      select id as job, receipt_id as receipt from jobs where receipt_id is not null and hashtext(id) % ${Math.max(1, Math.floor(jobs / 4000))} = 0
      limit 4000`;
    const [stored] = await client<{ n: number }[]>`select count(*)::int as n from jobs`;
    if (stored?.n !== jobs) throw new Error(`${stored?.n} of ${jobs} jobs are stored`);
    return { url, schema, jobs, ids: [...found] };
  } finally {
    await client.end();
  }
}

async function currentSchema(url: string): Promise<string> {
  const client = postgres(url, { max: 1 });
  const [current] = await client`select schema from read_model_generations where state = 'current'`;
  await client.end();
  return String(current?.schema);
}

/** Copies number 1, 2 … of all base rows, until there are as many as wanted. */
function copiesOf(
  table: string,
  time: string | null,
  { base, wanted }: { readonly base: number; readonly wanted: number },
): string {
  const columns = tableShapes(READ_MODELS).find(({ name }) => name === table)?.columns ?? [];
  const names = columns.map(({ name }) => `"${name}"`);
  const cells = columns.map(({ name }) => {
    const column = `b."${name}"`;
    if (IDS.has(name)) return `split_part(${column}, '_', 1) || '_' || substr(md5(${column} || k), 1, 26)`;
    if (TIMES.has(name))
      return `to_char(j.at - ((k - 1) * ${base}) * interval '10 s' + (${column}::timestamp - b."${time}"::timestamp), '${INSTANT}')`;
    if (name === 'leaf_index') return `${column} + k * ${base}`;
    return column;
  });
  const jobColumn = { jobs: 'j.id = b.id', proofs: 'j.id = b.job_id', receipts: 'j.id = b.job_id' }[table];
  return `insert into ${table} (${names.join(', ')})
    select ${cells.join(', ')}
    from (select id, receipt_id, n, made_at - n * interval '10 s' as at from base) j
    join ${table} b on ${jobColumn ?? 'j.receipt_id = b.id'}
    cross join generate_series(1, ${Math.ceil(wanted / base)}) k
    where k * ${base} + j.n <= ${wanted}`;
}

const INSTANT = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';

/** Counts of the windows and totals, from the rows. */
/** What a projection notes of its rows, without which a service builds them again from the log. */
const NOTED = `update projection set loss = null, counts = json_build_object(${tableShapes(READ_MODELS)
  .map(({ name }) => `'${name}', (select count(*) from ${name})`)
  .join(', ')})`;

function counts(jobs: number): string {
  const finished = (column: string, table: string, length: number) => `
    truncate ${table};
    insert into ${table} (${column}, succeeded, failed, position, durations)
      select left(completed_at, ${length}), count(*) filter (where status = 'succeeded'), count(*) filter (where status = 'failed'),
        max(position), array_fill(0, array[10]) || count(*)::int
      from proofs where completed_at is not null group by 1 order by 1;`;
  return `${finished('minute', 'monitoring_minutes', 16)} ${finished('hour', 'monitoring_hours', 13)}
    update monitoring_totals set started = ${jobs},
      succeeded = (select count(*) from proofs where status = 'succeeded'),
      failed = (select count(*) from proofs where status = 'failed');
    truncate trust_minutes;
    insert into trust_minutes (id, key_id, verified, position)
      select left(signed_at, 16) || ' ' || key_id, key_id, count(*), max(position) from receipts where verified
      group by 1, 2 order by 1;
    update trust_totals set receipts = (select count(*) from receipts),
      verified = (select count(*) from receipts where verified),
      latest_verified_at = (select max(signed_at) from receipts where verified)`;
}
