// P3: all read models rebuilt on PostgreSQL, against the least that anybody would have to do for the same rows: read
// the log, and COPY the final rows into empty tables with the same indexes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, rowsOf, type TableShape, tableShapes } from '#projections/rows.ts';
import { startProjections } from '#projections/runner.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { postgresRebuildStore } from '#src/adapters/read-store/postgres-rebuild.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { verifierPrimitives } from '#src/app/keys.ts';
import { rebuildReadModels } from '#src/app/service.ts';
import { readConfig } from '#src/config.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { postgresServer } from '#test/support/postgres.ts';
import { silent } from '#test/support/read-store.ts';
import { type Compared, type Measure, rounds, type Turn, timed } from './rounds.ts';
import { fillSignedLog } from './signed-log.ts';

const SHAPES = tableShapes(READ_MODELS);
/** Of the rebuild. */
const PAGE = 8192;
const PROJECTED_WITHIN_MS = 120_000;

export const rebuildMeasure: Measure = {
  name: 'P3',
  async run({ quick }, say) {
    const dataDir = mkdtempSync(join(tmpdir(), 'relay-bench-'));
    const server = await postgresServer();
    try {
      const { events, receipts } = await fillSignedLog(dataDir, quick ? 20_000 : 200_000);
      say(`${events} events, ${receipts} receipts`);
      const databaseUrl = await server.newDatabase();
      const expected = await projected(dataDir, databaseUrl, receipts);
      const texts = await finalRows(databaseUrl);
      const sides = {
        ours: () => rebuilt(dataDir, databaseUrl, expected),
        peer: () => readAndCopied(dataDir, databaseUrl, texts, expected),
      };
      const found = await rounds(quick ? 3 : 5, events, sides, say);
      return { ...TITLES, title: `rebuild of all read models, ${events} events`, rounds: found };
    } finally {
      await server.remove();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};

const TITLES: Omit<Compared, 'title' | 'rounds'> = {
  name: 'P3',
  unit: 'events/s',
  peer: 'read of the log + COPY of the same rows',
  goal: 0.5,
};

/** Table → digest of its rows. */
type Digests = Readonly<Record<string, string>>;

/** What the live projection tells: the rows that both sides must end with. */
async function projected(dataDir: string, url: string, receipts: number): Promise<Digests> {
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
  const store = postgresReadStore({ url, connections: 4 });
  const judgeReceipt = receiptJudge({ log, primitives: verifierPrimitives });
  const deps = { log, store, judgeReceipt, clock: systemClock(), logger: silent };
  const runner = startProjections(deps, { batchSize: 2000 });
  try {
    if (!(await runner.caughtUp((await log.head()) ?? '', PROJECTED_WITHIN_MS)))
      throw new Error('the live rows did not catch up');
    const db = await store.open();
    const [verified] = await rowsOf<{ n: number }>(
      db,
      sql`select count(*)::int as n from receipts where verified`,
    );
    if (verified?.n !== receipts) throw new Error(`${verified?.n} of ${receipts} receipts verify`);
    return await digests(db);
  } finally {
    await runner.stop();
    await store.close();
    await log.close();
  }
}

async function digests(db: Db): Promise<Digests> {
  const found: [string, string][] = [];
  for (const { name, key } of SHAPES) {
    const [row] = await rowsOf<{ told: string }>(
      db,
      sql.raw(`select count(*) || ' ' || coalesce(md5(string_agg(md5(to_jsonb(t)::text), '' order by t.${key} collate "C")), '')
        as told from ${name} t`),
    );
    found.push([name, row?.told ?? '']);
  }
  return Object.fromEntries(found);
}

function demandEqual(who: string, rows: Digests, expected: Digests): void {
  const wrong = SHAPES.filter(({ name }) => rows[name] !== expected[name]).map(({ name }) => name);
  if (wrong.length > 0) throw new Error(`${who}: other rows than the live ones in ${wrong.join(', ')}`);
}

async function rebuilt(dataDir: string, databaseUrl: string, expected: Digests): Promise<Turn> {
  const config = readConfig({ DATA_DIR: dataDir, DATABASE_URL: databaseUrl });
  let handled = 0;
  const ms = await timed(async () => {
    handled = (await rebuildReadModels(config, {})).eventsHere;
  });
  const store = postgresReadStore({ url: databaseUrl, connections: 1 });
  try {
    demandEqual('the rebuild', await digests(await store.open()), expected);
  } finally {
    await store.close();
  }
  return { handled, ms };
}

type CopyText = { readonly shape: TableShape; readonly columns: readonly string[]; readonly text: string };

/** The rows in the text that COPY takes. Asked for in SQL: COPY to standard output never ends with postgres.js on Bun. */
async function finalRows(url: string): Promise<readonly CopyText[]> {
  const client = postgres(url, { max: 1 });
  try {
    const texts: CopyText[] = [];
    for (const shape of SHAPES) {
      const columns = [...shape.columns.map(([, column]) => column), 'position'];
      const cells = columns.map((column) => `coalesce(${ESCAPED.replace('?', `"${column}"::text`)}, '\\N')`);
      const lines = await client.unsafe<{ line: string }[]>(
        `select ${cells.join(" || E'\t' || ")} as line from ${shape.name}`,
      );
      texts.push({ shape, columns, text: lines.map(({ line }) => `${line}\n`).join('') });
    }
    return texts;
  } finally {
    await client.end({ timeout: 5 });
  }
}

/** https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-TEXT-FORMAT */
const ESCAPED = String.raw`replace(replace(replace(replace(?, '\', '\\'), E'\n', '\n'), E'\r', '\r'), E'\t', '\t')`;

/** The rebuild's own way to COPY, in one transaction, into tables that the migrations make elsewhere. */
async function readAndCopied(
  dataDir: string,
  url: string,
  texts: readonly CopyText[],
  expected: Digests,
): Promise<Turn> {
  const store = postgresRebuildStore({ url });
  const inPlace = <T>(work: Parameters<typeof store.transaction<T>>[0]) =>
    store.transaction<T>(async (tx) => {
      await tx.db.execute(sql`select set_config('search_path', 'bench_peer', true)`);
      return work(tx);
    });
  try {
    await inPlace(async ({ db }) => {
      await db.execute(sql`create schema bench_peer`);
      for (const statement of store.schema.statements) await db.execute(sql.raw(statement));
    });
    let handled = 0;
    const ms = await timed(async () => {
      const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
      for (let after: string | null = null, more = true; more; ) {
        const page = await log.readAll({ after, max: PAGE });
        handled += page.length;
        after = page.at(-1)?.position ?? after;
        more = page.length === PAGE;
      }
      await log.close();
      await inPlace(async ({ copy }) => {
        for (const { shape, columns, text } of texts)
          if (text !== '') await copy?.(shape.name, columns, text);
      });
    });
    demandEqual('the peer', await inPlace(({ db }) => digests(db)), expected);
    return { handled, ms };
  } finally {
    await store.transaction(({ db }) => db.execute(sql`drop schema if exists bench_peer cascade`));
    await store.close();
  }
}
