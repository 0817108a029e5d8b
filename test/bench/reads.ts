// P4: reads over HTTP with 10^6 jobs on Postgres: records against the same SQL by postgres.js, documents and pages against
// bare Elysia that answers with equal bytes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { monitoringQueries, windowStart } from '#projections/monitoring/query.ts';
import { proofQueries } from '#projections/proof/query.ts';
import { storeQueries } from '#projections/read-models.ts';
import { trustQueries } from '#projections/trust/query.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { bucketMs, bucketStarts } from '#src/http/routes/monitoring.ts';
import { startService, waitFor } from '#test/support/process/service.ts';
import { demand, load, type Turn } from './load.ts';
import { startPeer } from './processes.ts';
import { copiesNote, LARGEST, type Records, recordsOf, recordsWorld } from './records.ts';
import {
  type Goal,
  interleaved,
  type Measure,
  NO_GOAL,
  type Options,
  type Row,
  ratioAtLeast,
  row,
} from './rounds.ts';

const CALLERS = 32;
const DAY_MS = 86_400_000;

export const readsMeasure: Measure = {
  name: 'P4',
  title: 'reads over HTTP, Postgres',
  async run(options) {
    const begun = performance.now();
    const records = await recordsOf(options.count(...LARGEST));
    const ready = performance.now();
    const { dataDir } = await recordsWorld();
    const service = await startService({
      DATA_DIR: dataDir,
      DATABASE_URL: records.url,
      RATE_LIMIT_PER_MINUTE: '1000000',
      RETENTION_JOBS_DAYS: '36500',
      RETENTION_RECEIPTS_DAYS: '36500',
    });
    const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
    try {
      options.say(`${records.jobs} jobs, made in ${((ready - begun) / 1000).toFixed(1)} s`);
      await waitFor('the rows are counted', async () => {
        const { ok } = await fetch(`${service.url}/api/proofs/recent`);
        return ok;
      });
      options.say(`${records.jobs} jobs, counted in ${((performance.now() - ready) / 1000).toFixed(1)} s`);
      return {
        rows: [
          ...(await recordRows(service, records, options)),
          ...(await documentRows(service, folder, options)),
        ],
        notes: [
          copiesNote(await recordsWorld()),
          'the same SQL: the statements behind the read, sent by postgres.js from the load generator, without HTTP; for a job one SELECT by its id. bare Elysia and a SELECT for each: that SELECT behind one route, in a process of its own.',
          'trust: the relay answers from its cache for up to 500 ms; the peer queries on each call. monitoring: every request has a window of its own; all windows are counted together, at most once for each state of the rows and 500 ms.',
          'bare Elysia: the same bytes from memory.',
        ],
      };
    } finally {
      await service.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

type Served = { readonly pid: number; readonly url: string };

/** The rows of one statement, each as an array of its columns. */
type Values = readonly (readonly unknown[])[];

type Read = {
  readonly title: string;
  /** Requests of a turn. */
  readonly count: number;
  readonly path: (n: number) => string;
  /** The statements behind it. */
  readonly direct: (n: number) => Promise<readonly Values[]>;
  /** What both sides must agree on. */
  readonly inBody: (body: never) => unknown;
  readonly inRows: (answers: readonly Values[]) => unknown;
};

async function recordRows(service: Served, records: Records, options: Options): Promise<readonly Row[]> {
  const { url, schema } = records;
  const connection = { search_path: `"${schema}"`, enable_seqscan: 'off', jit: 'off' };
  const client = postgres(url, { max: 10, connection, onnotice: () => undefined });
  try {
    const rows: Row[] = [];
    for (const read of await readsOf(client, records)) {
      const count = options.count(read.count, read.count / 4, 20);
      await compare(service, read);
      const sides = {
        ours: () => load(service.pid, CALLERS, count, (n) => demand(`${service.url}${read.path(n)}`)),
        peer: () =>
          load(process.pid, CALLERS, count, async (n) => {
            if ((await read.direct(n))[0]?.length === 0) throw new Error(`${read.title}: no rows`);
          }),
      };
      const rounds = await interleaved(options, sides, read.title);
      const titles = { title: `${read.title}, ${records.jobs} jobs`, peer: 'the same SQL' };
      rows.push(...rowsOf(titles, rounds, ratioAtLeast(0.7)));
    }
    return [...rows, ...(await sqlPeerRows(service, records, options))];
  } finally {
    await client.end();
  }
}

/** How much of the distance to the SQL is HTTP itself: the read of a job by bare Elysia and postgres.js. */
async function sqlPeerRows(service: Served, records: Records, options: Options): Promise<readonly Row[]> {
  const { url, schema } = records;
  const peer = await startPeer('sql.ts', {
    DATABASE_URL: url,
    DATABASE_SCHEMA: schema,
    STATEMENT: JOB_BY_ID,
  });
  try {
    const turn = (served: Served, path: string) => () =>
      load(served.pid, CALLERS, options.count(6000, 2000, 20), (n) =>
        demand(`${served.url}${path}/${jobOf(records, n)}`),
      );
    const sides = { ours: turn(service, '/api/jobs'), peer: turn(peer, '') };
    const rounds = await interleaved(options, sides, 'job, bare Elysia');
    const titles = { title: `job, ${records.jobs} jobs`, peer: 'bare Elysia and a SELECT for each' };
    return rowsOf(titles, rounds, NO_GOAL);
  } finally {
    await peer.stop();
  }
}

function rowsOf(
  { title, peer }: { readonly title: string; readonly peer: string },
  rounds: readonly { readonly ours: Turn; readonly peer: Turn }[],
  goal: Goal,
): readonly Row[] {
  const of = (figure: keyof Turn) =>
    rounds.map(({ ours, peer }) => ({ ours: ours[figure], peer: peer[figure] }));
  return [
    row({ measure: 'P4', title, unit: '/s', peer }, goal, of('perSecond')),
    row({ measure: 'P4', title: `CPU of ${title}`, unit: 'ms', peer }, NO_GOAL, of('cpu')),
  ];
}

/** Both sides give the same records; throws if not. */
async function compare(service: Served, read: Read): Promise<void> {
  for (let n = 0; n < 10; n++) {
    const response = await fetch(`${service.url}${read.path(n)}`);
    const ours = JSON.stringify(read.inBody((await response.json()) as never));
    const theirs = JSON.stringify(read.inRows(await read.direct(n)));
    if (response.status !== 200 || ours !== theirs)
      throw new Error(`${read.title}: ${ours} is not ${theirs}`);
  }
}

type Statement = { readonly query: string; readonly params: unknown[] };

/** Reads of a job that come together share a statement in the service; the peers send one for each. */
const JOB_BY_ID = 'select * from jobs where id = $1';

const jobOf = ({ ids }: Records, n: number) => ids[n % ids.length]?.job ?? '';

/** The statements that the read models send for `ask`. */
async function recorded(
  { url, schema }: Records,
  ask: (db: PostgresJsDatabase) => Promise<unknown>,
): Promise<readonly Statement[]> {
  const seen: Statement[] = [];
  const client = postgres(url, { max: 1, connection: { search_path: `"${schema}"` } });
  try {
    await ask(drizzle(client, { logger: { logQuery: (query, params) => seen.push({ query, params }) } }));
    return seen;
  } finally {
    await client.end();
  }
}

async function readsOf(client: postgres.Sql, records: Records): Promise<readonly Read[]> {
  const send = (statements: readonly Statement[]) =>
    Promise.all(
      statements.map(({ query, params }) =>
        client.unsafe(query, params as string[], { prepare: true }).values(),
      ),
    );
  const idOf = (n: number) => jobOf(records, n);
  const now = Date.now();
  const since = windowStart(now, DAY_MS);
  const summary = (db: PostgresJsDatabase) =>
    Promise.all([monitoringQueries(db).summary(now, DAY_MS), storeQueries(db).countUnverified()]);
  const recent = await recorded(records, (db) => proofQueries(db).recent(LIMITS.recentProofs.default));
  const monitored = await recorded(records, (db) =>
    Promise.all([
      monitoringQueries(db).totals(now),
      monitoringQueries(db).series(bucketStarts(now, DAY_MS, bucketMs(DAY_MS))),
      proofQueries(db).recentFailures(since, LIMITS.recentFailures.max),
      storeQueries(db).countUnverified(),
    ]),
  );
  const trusted = await recorded(records, (db) =>
    Promise.all([
      summary(db),
      trustQueries(db).receipts(since),
      trustQueries(db).payments(),
      storeQueries(db).counts(),
    ]),
  );
  return [
    {
      title: 'job',
      count: 6000,
      path: (n) => `/api/jobs/${idOf(n)}`,
      direct: (n) => send([{ query: JOB_BY_ID, params: [idOf(n)] }]),
      inBody: ({ id, status }: { id: string; status: string }) => [id, status],
      inRows: ([found]) => found?.[0]?.slice(0, 2),
    },
    {
      title: 'recent proofs',
      count: 3000,
      path: () => '/api/proofs/recent',
      direct: () => send(recent),
      inBody: ({ proofs }: { proofs: { jobId: string }[] }) => proofs.map(({ jobId }) => jobId),
      inRows: ([found]) => found?.map(([jobId]) => jobId),
    },
    {
      title: 'monitoring, a window each',
      count: 240,
      path: (n) => `/api/monitoring/executions?windowMs=${DAY_MS - 60_000 * (n % 200)}`,
      direct: () => send(monitored),
      inBody: ({ stats }: { stats: { total: number; running: number } }) => stats.total,
      inRows: ([found]) => Number(found?.[0]?.[0]),
    },
    {
      title: 'trust',
      count: 2000,
      path: () => '/api/trust',
      direct: () => send(trusted),
      inBody: ({ execution }: { execution: { stats: { total: number } } }) => execution.stats.total,
      inRows: ([found]) => Number(found?.[0]?.[0]),
    },
  ];
}

const DOCUMENTS = ['/api/capabilities', '/openapi.json', '/docs', '/'] as const;

async function documentRows(service: Served, folder: string, options: Options): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const path of DOCUMENTS) {
    const answer = await fetch(`${service.url}${path}`);
    const body = new Uint8Array(await answer.arrayBuffer());
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
    const file = join(folder, 'body');
    writeFileSync(file, body);
    const peer = await startPeer('bare.ts', {
      BODY_FILE: file,
      CONTENT_TYPE: answer.headers.get('content-type') ?? '',
    });
    try {
      const turn =
        ({ pid, url }: Served) =>
        () =>
          load(pid, CALLERS, options.count(4000, 1500, 20), async () => {
            const response = await fetch(`${url}${path}`);
            if ((await response.arrayBuffer()).byteLength !== body.length)
              throw new Error(`${path}: other bytes`);
          });
      const sides = { ours: turn(service), peer: turn(peer) };
      const rounds = await interleaved(options, sides, path);
      const titles = { title: `${path}, ${body.length} bytes`, peer: 'bare Elysia' };
      rows.push(...rowsOf(titles, rounds, ratioAtLeast(0.6)));
    } finally {
      await peer.stop();
    }
  }
  return rows;
}
