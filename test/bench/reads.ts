// P4: reads over HTTP with 10^6 jobs on Postgres: records against the same SQL by postgres.js, documents and pages against
// bare Elysia that answers with equal bytes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { monitoringQueries, windowStart } from '#projections/monitoring/query.ts';
import { proofQueries } from '#projections/proof/query.ts';
import { storeQueries } from '#projections/store-query.ts';
import { trustQueries } from '#projections/trust/query.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { bucketMs, bucketStarts } from '#src/http/routes/monitoring.ts';
import { startService } from '#test/support/service.ts';
import { demand, load, type Turn } from './load.ts';
import { startPeer } from './processes.ts';
import { type Records, recordsOf, recordsWorld } from './records.ts';
import {
  interleaved,
  type Measure,
  type Options,
  type Row,
  ratioAtLeast,
  ratioAtMost,
  row,
} from './rounds.ts';

const CALLERS = 32;
const DAY_MS = 86_400_000;

export const readsMeasure: Measure = {
  name: 'P4',
  title: 'reads over HTTP, Postgres',
  async run(options) {
    const records = await recordsOf(options.quick ? 20_000 : 1_000_000);
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
      options.say(`${records.jobs} jobs`);
      await demand(`${service.url}/health`);
      return {
        rows: [
          ...(await recordRows(service, records, options)),
          ...(await documentRows(service, folder, options)),
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

async function recordRows(
  service: Served,
  records: Records,
  { quick, say }: Options,
): Promise<readonly Row[]> {
  const { url, schema } = records;
  const connection = { search_path: `"${schema}"`, enable_seqscan: 'off', jit: 'off' };
  const client = postgres(url, { max: 10, connection, onnotice: () => undefined });
  try {
    const rows: Row[] = [];
    for (const read of await readsOf(client, records)) {
      const count = quick ? read.count / 4 : read.count;
      await compare(service, read);
      const sides = {
        ours: () => load(service.pid, CALLERS, count, (n) => demand(`${service.url}${read.path(n)}`)),
        peer: () =>
          load(process.pid, CALLERS, count, async (n) => {
            if ((await read.direct(n))[0]?.length === 0) throw new Error(`${read.title}: no rows`);
          }),
      };
      const rounds = await interleaved(quick ? 2 : 5, sides, (line) => say(`${read.title}: ${line}`));
      const titles = { measure: 'P4', title: `${read.title}, ${records.jobs} jobs`, peer: 'the same SQL' };
      rows.push(...rowsOf(titles, rounds, 0.7));
    }
    return rows;
  } finally {
    await client.end();
  }
}

function rowsOf(
  { measure, title, peer }: { readonly measure: string; readonly title: string; readonly peer: string },
  rounds: readonly { readonly ours: Turn; readonly peer: Turn }[],
  least: number,
): readonly Row[] {
  const of = (figure: keyof Turn) =>
    rounds.map(({ ours, peer }) => ({ ours: ours[figure], peer: peer[figure] }));
  return [
    row({ measure, title, unit: '/s', peer }, ratioAtLeast(least), of('perSecond')),
    row({ measure, title: `CPU of ${title}`, unit: 'ms', peer }, ratioAtMost(0), of('cpu')),
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

/** Their SQL is that which the read models send, recorded once. */
async function readsOf(client: postgres.Sql, { url, schema, ids }: Records): Promise<readonly Read[]> {
  const seen: { readonly query: string; readonly params: unknown[] }[] = [];
  const recorder = postgres(url, { max: 1, connection: { search_path: `"${schema}"` } });
  const db = drizzle(recorder, { logger: { logQuery: (query, params) => seen.push({ query, params }) } });
  const statements = async (ask: () => Promise<unknown>) => {
    seen.length = 0;
    await ask();
    return [...seen];
  };
  const send = (asked: typeof seen) =>
    Promise.all(
      asked.map(({ query, params }) => client.unsafe(query, params as string[], { prepare: true }).values()),
    );
  const idOf = (n: number) => ids[n % ids.length]?.job ?? '';
  const now = Date.now();
  const since = windowStart(now, DAY_MS);
  const [monitoring, proof, trust] = [monitoringQueries(db), proofQueries(db), trustQueries(db)];
  const summary = () => Promise.all([monitoring.summary(now, DAY_MS), storeQueries(db).countUnverified()]);
  try {
    const recent = await statements(() => proof.recent(LIMITS.recentProofs.default));
    const series = () => monitoring.series(since, bucketStarts(since, now, bucketMs(DAY_MS)));
    const failures = () => proof.recentFailures(since, LIMITS.recentFailures.max);
    const monitored = await statements(() => Promise.all([summary(), series(), failures()]));
    const trusted = await statements(() =>
      Promise.all([summary(), trust.receipts(since), trust.payments(), storeQueries(db).counts()]),
    );
    return [
      {
        title: 'job',
        count: 8000,
        path: (n) => `/api/jobs/${idOf(n)}`,
        // Reads by key that come together share a statement in the service; here each has its own.
        direct: (n) => send([{ query: 'select * from jobs where id = $1', params: [idOf(n)] }]),
        inBody: ({ id, status }: { id: string; status: string }) => [id, status],
        inRows: ([found]) => found?.[0]?.slice(0, 2),
      },
      {
        title: 'recent proofs',
        count: 4000,
        path: () => '/api/proofs/recent',
        direct: () => send(recent),
        inBody: ({ proofs }: { proofs: { jobId: string }[] }) => proofs.map(({ jobId }) => jobId),
        inRows: ([found]) => found?.map(([jobId]) => jobId),
      },
      {
        // Answers are kept for 500 ms: a window of its own for each request is not.
        title: 'monitoring, a window each',
        count: 400,
        path: (n) => `/api/monitoring/executions?windowMs=${DAY_MS - 60_000 * (n % 200)}`,
        direct: () => send(monitored),
        inBody: ({ stats }: { stats: { total: number; running: number } }) => stats.total,
        inRows: ([found]) => Number(found?.[0]?.[0]),
      },
      {
        title: 'trust',
        count: 4000,
        path: () => '/api/trust',
        direct: () => send(trusted),
        inBody: ({ execution }: { execution: { stats: { total: number } } }) => execution.stats.total,
        inRows: ([found]) => Number(found?.[0]?.[0]),
      },
    ];
  } finally {
    await recorder.end();
  }
}

const DOCUMENTS = ['/api/capabilities', '/openapi.json', '/docs', '/'] as const;

async function documentRows(
  service: Served,
  folder: string,
  { quick, say }: Options,
): Promise<readonly Row[]> {
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
          load(pid, CALLERS, quick ? 2000 : 10_000, async () => {
            const response = await fetch(`${url}${path}`);
            if ((await response.arrayBuffer()).byteLength !== body.length)
              throw new Error(`${path}: other bytes`);
          });
      const sides = { ours: turn(service), peer: turn(peer) };
      const rounds = await interleaved(quick ? 2 : 5, sides, (line) => say(`${path}: ${line}`));
      const titles = { measure: 'P4', title: `${path}, ${body.length} bytes`, peer: 'bare Elysia' };
      rows.push(...rowsOf(titles, rounds, 0.6));
    } finally {
      await peer.stop();
    }
  }
  return rows;
}
