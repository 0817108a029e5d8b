// P13: the CPU of a service to which nothing happens, on each kind of stores, and of one that is called seldom, against the
// naive durable relay.
import { sleep } from '#src/lib/time.ts';
import { startEventStoreServer } from '#test/support/log/eventstore-server.ts';
import { postgresServer } from '#test/support/log/postgres.ts';
import { makeWorld } from '#test/support/world/service-world.ts';
import { DURABLE_PEER, EXECUTE, executions, startClustered, startDurablePeer, warmUpCalls } from './calls.ts';
import { cpuMs } from './processes.ts';
import { absoluteAtMost, interleaved, type Measure, type Options, type Row, row } from './rounds.ts';

const PEER = 'naive durable relay';

/** Calls a second, ms of CPU a call at most, and calls of a turn. */
const RATES = [
  { perSecond: 5, mostMs: 6, calls: { full: 60, quick: 20, smoke: 5 } },
  { perSecond: 50, mostMs: 3, calls: { full: 400, quick: 100, smoke: 10 } },
] as const;

/** Per cent of a core. */
const IDLE_MOST = 0.5;

type Process = { readonly pid: number };

export const restMeasure: Measure = {
  name: 'P13',
  title: 'CPU of a service that rests, or is called seldom',
  async run(options) {
    const world = await makeWorld({ embedded: true });
    const peer = await startDurablePeer(world);
    const postgres = await postgresServer({ own: true });
    const server = await startEventStoreServer();
    try {
      const embedded = await world.start();
      const shared = await world.start({
        DATABASE_URL: await postgres.newDatabase(),
        DATA_DIR: `${world.dataDir}-shared`,
      });
      const clustered = await startClustered(world, server.url, await postgres.newDatabase());
      const resting = {
        'embedded stores': embedded,
        Postgres: shared,
        'EventStoreDB and Postgres': clustered,
      };
      for (const relay of Object.values(resting))
        await executions(world, relay, 64, warmUpCalls(options) / 5, () => ({ path: EXECUTE }));
      await executions(world, peer, 64, warmUpCalls(options) / 5, () => ({ path: '/execute' }));
      const rows: Row[] = [...(await idle(options, resting, peer))];
      for (const { perSecond, mostMs, calls } of RATES) {
        const { full, quick, smoke } = calls;
        const turn = (relay: { readonly pid: number; readonly url: string }, path: string) => () =>
          executions(world, relay, { perSecond }, options.count(full, quick, smoke), () => ({ path }));
        const sides = { ours: turn(embedded, EXECUTE), peer: turn(peer, '/execute') };
        const rounds = await interleaved(options, sides, `${perSecond} calls a second`);
        const titles = { measure: 'P13', title: `CPU a call, ${perSecond}/s`, unit: 'ms', peer: PEER };
        const cpu = rounds.map((each) => ({ ours: each.ours.cpu, peer: each.peer.cpu }));
        rows.push(row(titles, absoluteAtMost(mostMs), cpu));
      }
      const notes = [
        DURABLE_PEER,
        'Idle: all services rest in the same window, after the same calls. EventStoreDB is an in-memory double in the process of the load generator.',
      ];
      return { rows, notes };
    } finally {
      await peer.stop();
      await world.end();
      await server.end();
      await postgres.remove();
    }
  },
};

/** Of all processes in the same window: none of them does anything. */
async function idle(
  { count, rounds, say }: Options,
  resting: Readonly<Record<string, Process>>,
  peer: Process,
): Promise<readonly Row[]> {
  const windowMs = count(20_000, 6000, 1000);
  // The runtime collects garbage each second until the heap has not changed for half a minute.
  await sleep(count(60_000, 5000, 0));
  const pids = [...Object.values(resting), peer].map(({ pid }) => pid);
  const used: number[][] = [];
  for (let n = 1; n <= rounds; n++) {
    const [before, begun] = [pids.map(cpuMs), performance.now()];
    await sleep(windowMs);
    const after = pids.map(cpuMs);
    const ms = performance.now() - begun;
    used.push(after.map((cpu, i) => (100 * (cpu - (before[i] ?? 0))) / ms));
    say(`idle: window ${n} of ${rounds}`);
  }
  return Object.keys(resting).map((stores, i) =>
    row(
      { measure: 'P13', title: `idle, ${stores}`, unit: '% of a core', peer: PEER },
      absoluteAtMost(IDLE_MOST),
      used.map((each) => ({ ours: each[i] ?? Number.NaN, peer: each.at(-1) ?? Number.NaN })),
    ),
  );
}
