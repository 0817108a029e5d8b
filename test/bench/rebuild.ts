// P3: a rebuild of all read models on Postgres against the least work that makes the same rows: reading the event log, and
// COPY of the final rows into empty tables with the same indexes.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { pipeline } from 'node:stream/promises';
import postgres from 'postgres';
import { READ_MODELS } from '#projections/registry.ts';
import { tableShapes } from '#projections/rows.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { tableLayout } from '#src/adapters/read-store/migrations.ts';
import { rebuildReadModels } from '#src/app/rebuild.ts';
import { readConfig } from '#src/config.ts';
import { postgresServer } from '#test/support/log/postgres.ts';
import { interleaved, type Measure, NO_GOAL, ratioAtLeast, row, timed } from './rounds.ts';
import { fillSignedLog } from './signed-log.ts';

const SHAPES = tableShapes(READ_MODELS);

export const rebuildMeasure: Measure = {
  name: 'P3',
  title: 'rebuild of all read models, Postgres',
  async run(options) {
    const dataDir = mkdtempSync(join(tmpdir(), 'relay-bench-'));
    const server = await postgresServer();
    const url = await server.newDatabase();
    const client = postgres(url, { max: 1, onnotice: () => undefined });
    try {
      const { events, receipts } = await fillSignedLog(dataDir, options.count(100_000, 20_000, 500));
      const rebuilt = async () => {
        const config = readConfig({ DATA_DIR: dataDir, DATABASE_URL: url });
        const before = { all: process.cpuUsage(), main: mainThreadMs() };
        if ((await rebuildReadModels(config, {})).events !== events)
          throw new Error('not all events were read');
        const { user, system } = process.cpuUsage(before.all);
        shares.push((mainThreadMs() - before.main) / ((user + system) / 1000));
      };
      const shares: number[] = [];
      await rebuilt();
      options.say(`${events} events, ${receipts} receipts`);
      const expected = await digestOf(client, await onlySchema(client));
      const texts = await finalRows(client, await onlySchema(client), receipts);
      const turn = async (work: () => Promise<void>, schemaOf: () => Promise<string>) => {
        const before = process.cpuUsage();
        const ms = await timed(work);
        const { user, system } = process.cpuUsage(before);
        const digest = await digestOf(client, await schemaOf());
        if (digest !== expected) throw new Error(`the rows differ: ${digest} is not ${expected}`);
        return { perSecond: events / (ms / 1000), cpu: (user + system) / events };
      };
      const sides = {
        ours: () => turn(rebuilt, () => onlySchema(client)),
        peer: () =>
          turn(
            () => readAndCopied(dataDir, url, texts, events),
            async () => PEER,
          ),
      };
      const rounds = await interleaved(options, sides);
      const percents = shares.map((share) => `${Math.round(share * 100)} %`).join(', ');
      options.say(`the main thread's share of a rebuild's CPU time, without Postgres: ${percents}`);
      const titles = (title: string, unit: string) => ({
        measure: 'P3',
        title,
        unit,
        peer: 'read + COPY of the same rows',
      });
      const compared = (figure: 'perSecond' | 'cpu') =>
        rounds.map(({ ours, peer }) => ({ ours: ours[figure], peer: peer[figure] }));
      return {
        rows: [
          row(titles(`events of ${events}`, '/s'), ratioAtLeast(0.7), compared('perSecond')),
          row(titles('CPU an event, without Postgres', 'µs'), NO_GOAL, compared('cpu')),
        ],
        notes: [
          'read + COPY: all events are read, and the final rows copied into empty tables with the same indexes; no event is decoded, no receipt verified. After each turn the rows of all tables are compared.',
        ],
      };
    } finally {
      await client.end();
      await server.remove();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};

/** CPU time of this process's main thread; NaN where the system does not say. */
function mainThreadMs(): number {
  if (process.platform !== 'linux') return Number.NaN;
  const stat = readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8');
  const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14);
  return (Number(user) + Number(system)) * 10;
}

/** The schema of the current rows; drops the ones that it has replaced. */
async function onlySchema(client: postgres.Sql): Promise<string> {
  const replaced = await client`delete from read_model_generations where state <> 'current' returning schema`;
  for (const { schema } of replaced) await client`drop schema ${client(String(schema))} cascade`;
  const [current] = await client`select schema from read_model_generations`;
  return String(current?.schema);
}

/** Equal for equal rows in any order. */
async function digestOf(client: postgres.Sql, schema: string): Promise<string> {
  const parts = SHAPES.map(({ name }) => {
    const hashes = 'count(*), sum(hashtextextended(t::text, 0)::numeric)';
    return `select '${name}' as name, ${hashes} from "${schema}"."${name}" t`;
  });
  // Parallel workers may return the parts in any order.
  return JSON.stringify(await client.unsafe(`${parts.join(' union all ')} order by name`));
}

type CopyText = { readonly table: string; readonly columns: readonly string[]; readonly text: string };

/** The rows in the text that COPY takes; every receipt must have been verified. */
async function finalRows(
  client: postgres.Sql,
  schema: string,
  receipts: number,
): Promise<readonly CopyText[]> {
  const texts: CopyText[] = [];
  for (const { name: table, columns: shape } of SHAPES) {
    const columns = shape.map(({ name }) => name);
    const cells = columns.map((column) => `coalesce(${ESCAPED.replace('?', `"${column}"::text`)}, '\\N')`);
    const lines = await client.unsafe<{ line: string }[]>(
      `select ${cells.join(" || E'\\t' || ")} as line from "${schema}"."${table}"`,
    );
    texts.push({ table, columns, text: lines.map(({ line }) => `${line}\n`).join('') });
  }
  const [verified] = await client.unsafe(
    `select count(*)::int as n from "${schema}".receipts where verified`,
  );
  if (verified?.n !== receipts) throw new Error(`${verified?.n} of ${receipts} receipts verify`);
  return texts;
}

/** https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-TEXT-FORMAT */
const ESCAPED = String.raw`replace(replace(replace(replace(?, '\', '\\'), E'\n', '\n'), E'\r', '\r'), E'\t', '\t')`;

const PEER = 'bench_peer';
/** As many as a rebuild reads at a time. */
const PAGE = 8192;

async function readAndCopied(
  dataDir: string,
  url: string,
  texts: readonly CopyText[],
  events: number,
): Promise<void> {
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
  let read = 0;
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE });
    const last = page.at(-1);
    if (last === undefined) break;
    read += page.length;
    after = last.position;
  }
  await log.close();
  if (read !== events) throw new Error(`${read} of ${events} events were read`);
  const client = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    await client.begin(async (transaction) => {
      await transaction.unsafe(`drop schema if exists ${PEER} cascade; create schema ${PEER}`);
      await transaction.unsafe(`set local search_path to ${PEER}`);
      for (const statement of tableLayout().statements) await transaction.unsafe(statement);
      for (const { table, columns, text } of texts) {
        if (text === '') continue;
        const names = columns.map((column) => `"${column}"`).join(', ');
        const stream = await transaction.unsafe(`copy "${table}" (${names}) from stdin`).writable();
        await pipeline(parts(text), stream);
      }
    });
  } finally {
    await client.end();
  }
}

/** One great write is copied again for each part of it that the socket takes. */
function* parts(text: string): Generator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 131_072) yield bytes.subarray(at, at + 131_072);
}
