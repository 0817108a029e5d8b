// P7: how reads of the rows, and the rebuild of an event, slow down from 10^4 to 10^6 jobs on Postgres. The read models'
// own queries run, without HTTP and its caches; all sizes take turns.
import postgres from 'postgres';
import { jobQueries } from '#projections/job/query.ts';
import { monitoringQueries, windowStart } from '#projections/monitoring/query.ts';
import { proofQueries } from '#projections/proof/query.ts';
import { storeQueries } from '#projections/read-models.ts';
import { receiptQueries } from '#projections/receipt/query.ts';
import type { Db } from '#projections/rows.ts';
import { transparencyQueries } from '#projections/transparency/query.ts';
import { trustQueries } from '#projections/trust/query.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { rebuildReadModels } from '#src/app/rebuild.ts';
import { readConfig } from '#src/config.ts';
import { bucketMs, bucketStarts } from '#src/http/routes/monitoring.ts';
import { copiesNote, LARGEST, type Records, recordsOf, recordsWorld } from './records.ts';
import {
  interleaved,
  type Measure,
  type Options,
  type Point,
  type Row,
  ratioAtMost,
  row,
  spread,
  timed,
} from './rounds.ts';
import { fillSignedLog } from './signed-log.ts';

const CALLERS = 8;
const DAY_MS = 86_400_000;

export const growthMeasure: Measure = {
  name: 'P7',
  title: 'growth of reads and of the rebuild with the number of jobs',
  async run(options) {
    const sizes = growthSizes(options);
    const records: Records[] = [];
    for (const jobs of sizes) {
      records.push(await recordsOf(jobs));
      options.say(`${jobs} jobs`);
    }
    const rows: Row[] = [];
    const points: Point[] = [];
    const add = (
      title: string,
      unit: string,
      most: number,
      rounds: readonly Readonly<Record<string, number>>[],
    ) => {
      const [small = 0, large = small] = [sizes[0], sizes.at(-1)];
      const of = (jobs: number) =>
        rounds.map((round) => ({ ours: round[jobs] ?? 0, peer: round[small] ?? 0 }));
      rows.push(
        row(
          { measure: 'P7', title: `${title}, ${large} jobs`, unit, peer: `${small} jobs` },
          ratioAtMost(most),
          of(large),
        ),
      );
      for (const jobs of sizes)
        points.push({
          series: title,
          x: jobs,
          y: spread(of(jobs).map(({ ours, peer }) => ours / peer)).median,
        });
    };
    for (const read of READS) add(read.title, 'ms', read.most, await timesOf(read, records, options));
    add('rebuild per event', 'µs', 1.2, await rebuildTimes(records, options));
    const notes = [
      `peer: the same queries, without HTTP and its caches, at ${sizes[0]} jobs in the same round. ${copiesNote(await recordsWorld())}`,
      'rebuild per event: a rebuild continues over the rows of so many jobs with events that are new to them.',
    ];
    return { rows, points, notes };
  },
};

const growthSizes = ({ count }: Options): readonly number[] => [
  ...new Set([count(10_000, 10_000, 2000), count(100_000, 20_000, 3000), count(...LARGEST)]),
];

type Read = {
  readonly title: string;
  readonly most: number;
  readonly calls: number;
  /** Prepares its queries; a call returns whether it found what is stored. */
  queries(db: Db, records: Records): (n: number) => Promise<boolean>;
};

const READS: readonly Read[] = [
  {
    title: 'job',
    most: 1.3,
    calls: 2000,
    queries(db, { ids }) {
      const { find } = jobQueries(db);
      return async (n) => (await find(ids[n % ids.length]?.job ?? ''))?.id === ids[n % ids.length]?.job;
    },
  },
  {
    title: 'receipt and its leaf',
    most: 1.3,
    calls: 1000,
    queries(db, { ids }) {
      const { find } = receiptQueries(db);
      const { leafIndex } = transparencyQueries(db);
      return async (n) => {
        const id = ids[n % ids.length]?.receipt ?? '';
        const [found, index] = await Promise.all([find(id), leafIndex(id)]);
        return found?.id === id && index !== null;
      };
    },
  },
  {
    title: 'recent proofs',
    most: 1.5,
    calls: 1000,
    queries(db) {
      const { recent } = proofQueries(db);
      return async () => (await recent(10)).length === 10;
    },
  },
  {
    title: 'monitoring',
    most: 1.5,
    calls: 200,
    queries(db, { jobs }) {
      const { totals, series } = monitoringQueries(db);
      const { recentFailures } = proofQueries(db);
      const { countUnverified } = storeQueries(db);
      const now = Date.now();
      const starts = bucketStarts(now, DAY_MS, bucketMs(DAY_MS));
      return async () => {
        const [{ total }] = await Promise.all([
          totals(now),
          series(starts),
          recentFailures(starts[0] ?? '', 10),
          countUnverified(),
        ]);
        return total >= jobs;
      };
    },
  },
  {
    title: 'trust',
    most: 1.5,
    calls: 200,
    queries(db, { jobs }) {
      const { summary } = monitoringQueries(db);
      const { receipts, payments } = trustQueries(db);
      const { countUnverified } = storeQueries(db);
      const now = Date.now();
      return async () => {
        const [{ stats }] = await Promise.all([
          summary(now, DAY_MS),
          receipts(windowStart(now, DAY_MS)),
          payments(),
          countUnverified(),
        ]);
        return stats.total >= jobs;
      };
    },
  },
];

type Times = readonly Readonly<Record<string, number>>[];

/** ms of a call, by the number of jobs. */
async function timesOf(read: Read, records: readonly Records[], options: Options): Promise<Times> {
  const stores = records.map(({ url }) => postgresReadStore({ url, connections: CALLERS }));
  const calls = options.count(read.calls, read.calls / 4, 20);
  try {
    const sides: Record<string, () => Promise<number>> = {};
    for (const [at, of] of records.entries()) {
      const db = await stores[at]?.open(of.schema);
      if (db === undefined) throw new Error('there is a store for each size');
      const ask = read.queries(db, of);
      sides[of.jobs] = async () => {
        let next = 0;
        const caller = async () => {
          for (let n = next++; n < calls; n = next++)
            if (!(await ask(n))) throw new Error(`${read.title}: not found among ${of.jobs} jobs`);
        };
        return (await timed(() => Promise.all(Array.from({ length: CALLERS }, caller)))) / calls;
      };
    }
    return await interleaved(options, sides, read.title);
  } finally {
    for (const store of stores) await store.close();
  }
}

/** µs of an event, by the number of jobs: new events are rebuilt over the rows of so many jobs. */
async function rebuildTimes(records: readonly Records[], options: Options): Promise<Times> {
  const world = await recordsWorld();
  const sides: Record<string, () => Promise<number>> = {};
  for (const [at, { url, jobs }] of records.entries()) {
    sides[jobs] = async () => {
      // One log for all sizes: the first of a round appends.
      if (at === 0)
        world.filled = await fillSignedLog(world.dataDir, options.count(12_000, 4000, 200), world.filled);
      await resumeBuilding(url);
      let [handled, begun, ended] = [0, 0, 0];
      await rebuildReadModels(readConfig({ DATA_DIR: world.dataDir, DATABASE_URL: url }), {
        onProgress(events) {
          if (events === 0) begun = performance.now();
          else ended = performance.now();
          handled = events;
        },
      });
      if (handled < world.filled.events) throw new Error(`${handled} events of ${world.filled.events}`);
      return (1000 * (ended - begun)) / handled;
    };
  }
  return interleaved(options, sides, 'rebuild');
}

/** The current rows become those of a rebuild that was ended in the middle: the next rebuild continues it. */
async function resumeBuilding(url: string): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => undefined });
  await client`update read_model_generations set state = 'building' where state = 'current'`;
  await client.end();
}
