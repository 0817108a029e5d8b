// P1: an execution against relays that promise less. P1e: the same on EventStoreDB and Postgres against the embedded
// stores. P9: paid against unpaid. One attempt to a local TLS target on a new connection.
import { join } from 'node:path';
import process from 'node:process';
import { DatabaseSync } from 'node:sqlite';
import { createKeyFile } from '#src/app/operator.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { challenge, makePayment, newPayer, type Payment } from '#test/support/chain/payer.ts';
import { startChainNode } from '#test/support/chain/scripted-node.ts';
import { startEventStoreServer } from '#test/support/log/eventstore-server.ts';
import { postgresServer } from '#test/support/log/postgres.ts';
import { makeWorld, type World } from '#test/support/world/service-world.ts';
import { load, type Pace, type Turn } from './load.ts';
import { type Measured, startPeer } from './processes.ts';
import {
  differenceAtMost,
  interleaved,
  type Measure,
  NO_GOAL,
  type Options,
  type Point,
  type Row,
  ratioAtLeast,
  ratioAtMost,
  row,
  spread,
} from './rounds.ts';

export const EXECUTE = '/api/execute/webhook';

type Relay = { readonly pid: number; readonly url: string };

/** One turn of executions; each call must have reached the target exactly once. */
export async function executions(
  world: World,
  relay: Relay,
  pace: Pace,
  count: number,
  request: (n: number) => { readonly path: string; readonly headers?: Record<string, string> },
): Promise<Turn> {
  const hits = () => world.target.requests.filter(({ path }) => path.startsWith('/hook')).length;
  const before = hits();
  const url = (n: number) => world.target.url('/hook', '127.0.0.1').concat(`?n=${n}`);
  const turn = await load(relay.pid, pace, count, async (n) => {
    const { path, headers } = request(n);
    const response = await fetch(`${relay.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ url: url(n), body: { text: 'a message of some length', n } }),
    });
    const answer = (await response.json()) as { readonly job?: { readonly status?: string } };
    if (response.status !== 200 || answer.job?.status !== 'succeeded')
      throw new Error(`${path}: ${response.status} ${JSON.stringify(answer).slice(0, 300)}`);
  });
  const sent = hits() - before;
  if (sent !== count) throw new Error(`${sent} requests at the target for ${count} calls`);
  world.target.requests.length = 0;
  return turn;
}

/** Calls of a turn: long enough for a CPU figure, whose clock ticks are 10 ms. */
function callsOf(concurrency: number, { count }: Options): number {
  if (concurrency < 16) return count(150, 50, 10);
  return concurrency === 16 ? count(600, 200, 32) : count(1500, 400, 64);
}

/** Calls before the first turn: what is measured is a relay that has run for a while, its code compiled. */
export const warmUpCalls = ({ count }: Options) => count(20_000, 500, 0);

const peerEnv = ({ folder }: World) => ({
  CA_FILE: join(folder, 'ca.pem'),
  DATABASE: join(folder, 'peer.db'),
});

/** The naive durable relay. */
export const startDurablePeer = (world: World): Promise<Measured> =>
  startPeer('relay.ts', { ...peerEnv(world), DURABLE: '1' });

export const DURABLE_PEER =
  'naive durable relay: Elysia and fetch on a new connection for each call, two commits (SQLite, synchronous = FULL) and one Ed25519 signature.';

const CONCURRENCIES = [1, 4, 16, 64] as const;

const SERIES = [
  ['ours', 'this relay'],
  ['durable', 'naive durable relay'],
  ['naive', 'naive relay'],
] as const;

export const callsMeasure: Measure = {
  name: 'P1',
  title: 'executions, one attempt, demo mode, embedded stores',
  async run(options) {
    const world = await makeWorld({ embedded: true });
    const durable = await startDurablePeer(world);
    const naive = await startPeer('relay.ts', peerEnv(world));
    try {
      const ours = await world.start();
      const rows: Row[] = [];
      const points: Point[] = [];
      const relays = [
        [ours, EXECUTE],
        [durable, '/execute'],
        [naive, '/execute'],
      ] as const;
      for (const [relay, path] of relays)
        await executions(world, relay, 64, warmUpCalls(options), () => ({ path }));
      for (const c of CONCURRENCIES) {
        const count = callsOf(c, options);
        const turn = (relay: Relay, path: string) => () =>
          executions(world, relay, c, count, () => ({ path }));
        const sides = {
          ours: turn(ours, EXECUTE),
          durable: turn(durable, '/execute'),
          naive: turn(naive, '/execute'),
        };
        const rounds = await interleaved(options, sides, `c = ${c}`);
        for (const [side, series] of SERIES) {
          const { median } = spread(rounds.map((each) => each[side].perSecond));
          points.push({ series, x: c, y: median });
        }
        if (c === 4) continue;
        const against = (peer: 'durable' | 'naive', figure: keyof Turn) =>
          rounds.map((each) => ({ ours: each.ours[figure], peer: each[peer][figure] }));
        const titles = (title: string, unit: string, peer: string) => ({
          measure: 'P1',
          title: `${title}, c = ${c}`,
          unit,
          peer,
        });
        if (c > 1) {
          rows.push(
            row(
              titles('calls', '/s', 'naive durable relay'),
              ratioAtLeast(0.55),
              against('durable', 'perSecond'),
            ),
          );
          rows.push(row(titles('calls', '/s', 'naive relay'), NO_GOAL, against('naive', 'perSecond')));
        } else {
          rows.push(
            row(titles('p50', 'ms', 'naive durable relay'), differenceAtMost(2), against('durable', 'p50')),
          );
          rows.push(
            row(titles('p99', 'ms', 'naive durable relay'), differenceAtMost(10), against('durable', 'p99')),
          );
        }
        if (c !== 16)
          rows.push(
            row(
              titles('CPU a call', 'ms', 'naive durable relay'),
              ratioAtMost(c === 1 ? 2.5 : 1.8),
              against('durable', 'cpu'),
            ),
          );
      }
      await ours.stop();
      const notes = [
        'naive relay: Elysia and fetch on a new connection for each call, no record.',
        DURABLE_PEER,
        `Each relay has answered ${warmUpCalls(options)} calls before. All relays, in processes of their own, call the same TLS target, which is in the process of the load generator.`,
      ];
      return { rows, points, notes };
    } finally {
      await Promise.all([durable.stop(), naive.stop(), world.end()]);
    }
  },
};

/** On EventStoreDB and Postgres. */
export function startClustered(world: World, eventStoreUrl: string, databaseUrl: string) {
  const keys = join(world.folder, 'keys.json');
  createKeyFile(keys);
  return world.start({
    EVENTSTORE_URL: eventStoreUrl,
    DATABASE_URL: databaseUrl,
    SIGNING_KEYS_FILE: keys,
    DATA_DIR: join(world.folder, 'clustered'),
  });
}

export const eventStoreMeasure: Measure = {
  name: 'P1e',
  title: 'executions on EventStoreDB and Postgres',
  async run(options) {
    const real = process.env.EVENTSTORE_URL;
    const world = await makeWorld({ embedded: true });
    const postgres = await postgresServer({ own: true });
    const server = real === undefined ? await startEventStoreServer() : null;
    try {
      const embedded = await world.start();
      const clustered = await startClustered(world, real ?? server?.url ?? '', await postgres.newDatabase());
      const count = options.count(800, 400, 64);
      const execute = (relay: Relay, calls: number) =>
        executions(world, relay, 64, calls, () => ({ path: EXECUTE }));
      const turn = (relay: Relay) => () => execute(relay, count);
      for (const relay of [clustered, embedded]) await execute(relay, warmUpCalls(options) / 2);
      const rounds = await interleaved(options, { ours: turn(clustered), peer: turn(embedded) });
      const compared = rounds.map(({ ours, peer }) => ({ ours: ours.perSecond, peer: peer.perSecond }));
      const on = real === undefined ? 'the test server' : 'a real server';
      const titles = { measure: 'P1e', title: `calls on ${on}, c = 64`, unit: '/s', peer: 'embedded stores' };
      const notes = [
        `embedded stores: this relay on SQLite and PGlite. EventStoreDB is ${on}${real === undefined ? ', an in-memory double in the process of the load generator' : ''}.`,
      ];
      return { rows: [row(titles, ratioAtLeast(0.6), compared)], notes };
    } finally {
      await world.end();
      await server?.end();
      await postgres.remove();
    }
  },
};

/** All from one client address, of which two payments are verified at the same time. */
const PAYERS = LIMITS.verifiesInFlight.max;

/** Turns of paid calls, each of which is settled once. `alone`: nothing else is settled meanwhile. */
export async function paidTurns(
  world: World,
  relay: Relay,
  facilitator: { readonly url: string },
  { alone = true } = {},
): Promise<(count: number) => Promise<Turn>> {
  const asked = await challenge(`${relay.url}${EXECUTE}`);
  let charged = 0;
  return async (count) => {
    // Signed before the clock starts: the buyer's work is not the relay's.
    const payments: Payment[] = [];
    for (let n = 0; n < count; n++) payments.push(await makePayment(newPayer(), asked));
    const turn = await executions(world, relay, PAYERS, count, (n) => ({
      path: EXECUTE,
      headers: payments[n]?.headers[2] ?? {},
    }));
    charged += count;
    const { settled } = (await (await fetch(`${facilitator.url}/`)).json()) as { settled: number };
    if (alone && settled !== charged) throw new Error(`${settled} of ${charged} payments were settled`);
    return turn;
  };
}

/** The settings of a relay that charges through these. */
export const charging = (facilitator: { readonly url: string }, chain: { readonly url: string }) => ({
  X402_ENABLED: 'true',
  X402_PAY_TO: newPayer().address,
  X402_FACILITATOR_URL: facilitator.url,
  X402_RPC_URL: chain.url,
});

/** The turn, with the bytes by which each of its calls let the event log grow: whole pages of its file. */
async function grown(dataDir: string, calls: number, turn: () => Promise<Turn>) {
  const db = new DatabaseSync(join(dataDir, 'events.db'), { readOnly: true });
  try {
    const size = db.prepare(
      'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
    );
    const bytes = () => Number(size.get()?.bytes);
    const before = bytes();
    return { ...(await turn()), bytes: (bytes() - before) / calls };
  } finally {
    db.close();
  }
}

export const paidMeasure: Measure = {
  name: 'P9',
  title: 'paid executions, instant facilitator double over HTTP',
  async run(options) {
    const world = await makeWorld({ embedded: true });
    const facilitator = await startPeer('facilitator.ts');
    const chain = await startChainNode();
    try {
      const unpaid = await world.start();
      const paid = await world.start({
        ...charging(facilitator, chain),
        DATA_DIR: join(world.folder, 'paid'),
      });
      const count = options.count(400, 150, 32);
      const turn = await paidTurns(world, paid, facilitator);
      const sides = {
        ours: () => grown(join(world.folder, 'paid'), count, () => turn(count)),
        peer: () =>
          grown(world.dataDir, count, () =>
            executions(world, unpaid, PAYERS, count, () => ({ path: EXECUTE })),
          ),
      };
      for (let turns = options.count(15, 0, 0); turns > 0; turns--) {
        await sides.ours();
        await sides.peer();
      }
      const rounds = await interleaved(options, sides);
      const compared = rounds.map(({ ours, peer }) => ({ ours: ours.perSecond, peer: peer.perSecond }));
      const cpu = rounds.map(({ ours, peer }) => ({ ours: ours.cpu, peer: peer.cpu }));
      const bytes = rounds.map(({ ours, peer }) => ({ ours: ours.bytes, peer: peer.bytes }));
      const titles = (title: string, unit: string) => ({
        measure: 'P9',
        title,
        unit,
        peer: 'unpaid executions',
      });
      return {
        rows: [
          row(titles(`paid calls, c = ${PAYERS}`, '/s'), ratioAtLeast(0.8), compared),
          row(titles('CPU a paid call', 'ms'), ratioAtMost(1.25), cpu),
          row(titles('event log a paid call', 'bytes'), NO_GOAL, bytes),
        ],
        notes: [
          'unpaid executions: the same service without payment. Every paid call has a payer of its own and is verified and settled once by a facilitator double in a process of its own, which checks no signature.',
        ],
      };
    } finally {
      await world.end();
      await facilitator.stop();
      await chain.down();
    }
  },
};
