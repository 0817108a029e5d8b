// P1: an execution against relays that promise less. P1e: the same on EventStoreDB and Postgres against the embedded
// stores. P9: paid against unpaid. One attempt to a local TLS target on a new connection.
import { join } from 'node:path';
import process from 'node:process';
import { createKeyFile } from '#src/app/operator.ts';
import { startEventStoreServer } from '#test/support/eventstore-server.ts';
import { facilitatorDouble } from '#test/support/facilitator-double.ts';
import { challenge, makePayment, newPayer, type Payment } from '#test/support/payer.ts';
import { postgresServer } from '#test/support/postgres.ts';
import { makeWorld, type World } from '#test/support/service-world.ts';
import { load, type Turn } from './load.ts';
import { startPeer } from './processes.ts';
import {
  differenceAtMost,
  interleaved,
  type Measure,
  type Point,
  type Row,
  ratioAtLeast,
  ratioAtMost,
  row,
} from './rounds.ts';

const EXECUTE = '/api/execute/webhook';

type Relay = { readonly pid: number; readonly url: string };

/** One turn of executions; each call must have reached the target exactly once. */
async function executions(
  world: World,
  relay: Relay,
  concurrency: number,
  count: number,
  request: (n: number) => { readonly path: string; readonly headers?: Record<string, string> },
): Promise<Turn> {
  const before = world.target.requests.length;
  const url = (n: number) => world.target.url('/hook', '127.0.0.1').concat(`?n=${n}`);
  const turn = await load(relay.pid, concurrency, count, async (n) => {
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
  const sent = world.target.requests.length - before;
  if (sent !== count) throw new Error(`${sent} requests at the target for ${count} calls`);
  world.target.requests.length = 0;
  return turn;
}

/** Calls of a turn: long enough for a CPU figure, whose clock ticks are 10 ms. */
const callsOf = (concurrency: number, quick: boolean): number =>
  (concurrency === 1 ? 150 : concurrency === 16 ? 600 : 1200) / (quick ? 3 : 1);

const CONCURRENCIES = [1, 4, 16, 64] as const;

export const callsMeasure: Measure = {
  name: 'P1',
  title: 'executions, one attempt, demo mode, embedded stores',
  async run({ quick, profile, say }) {
    const world = await makeWorld();
    const peerEnv = { CA_FILE: join(world.folder, 'ca.pem'), DATABASE: join(world.folder, 'peer.db') };
    const durable = await startPeer('relay.ts', { ...peerEnv, DURABLE: '1' });
    const naive = await startPeer('relay.ts', peerEnv);
    try {
      const ours = await world.start(
        profile === null ? {} : { BUN_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` },
      );
      const rows: Row[] = [];
      const points: Point[] = [];
      for (const c of CONCURRENCIES) {
        const count = callsOf(c, quick);
        const turn = (relay: Relay, path: string) => () =>
          executions(world, relay, c, count, () => ({ path }));
        const sides = {
          ours: turn(ours, EXECUTE),
          durable: turn(durable, '/execute'),
          naive: turn(naive, '/execute'),
        };
        const rounds = await interleaved(quick ? 2 : 5, sides, (line) => say(`c = ${c}: ${line}`));
        const median = (side: keyof typeof sides) =>
          row(
            { measure: '', title: '', unit: '', peer: '' },
            ratioAtLeast(0),
            rounds.map((each) => ({ ours: each[side].perSecond, peer: 1 })),
          ).ours.median;
        for (const side of ['ours', 'durable', 'naive'] as const)
          points.push({ series: side === 'ours' ? 'this relay' : `${side} relay`, x: c, y: median(side) });
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
          rows.push(
            row(titles('calls', '/s', 'naive relay'), ratioAtLeast(0), against('naive', 'perSecond')),
          );
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
      return { rows, points };
    } finally {
      await Promise.all([durable.stop(), naive.stop(), world.end()]);
    }
  },
};

export const eventStoreMeasure: Measure = {
  name: 'P1e',
  title: 'executions on EventStoreDB and Postgres',
  async run({ quick, say }) {
    const real = process.env.EVENTSTORE_URL;
    const world = await makeWorld();
    const postgres = await postgresServer({ own: true });
    const server = real === undefined ? await startEventStoreServer() : null;
    try {
      const keys = join(world.folder, 'keys.json');
      createKeyFile(keys);
      const embedded = await world.start();
      const clustered = await world.start({
        EVENTSTORE_URL: real ?? server?.url ?? '',
        DATABASE_URL: await postgres.newDatabase(),
        SIGNING_KEYS_FILE: keys,
        DATA_DIR: join(world.folder, 'clustered'),
      });
      const count = callsOf(64, quick);
      const turn = (relay: Relay) => () => executions(world, relay, 64, count, () => ({ path: EXECUTE }));
      const rounds = await interleaved(quick ? 2 : 5, { ours: turn(clustered), peer: turn(embedded) }, say);
      const compared = rounds.map(({ ours, peer }) => ({ ours: ours.perSecond, peer: peer.perSecond }));
      const on = real === undefined ? 'the test server' : 'a real server';
      const titles = { measure: 'P1e', title: `calls on ${on}, c = 64`, unit: '/s', peer: 'embedded stores' };
      return { rows: [row(titles, ratioAtLeast(0.6), compared)] };
    } finally {
      await world.end();
      await server?.end();
      await postgres.remove();
    }
  },
};

export const paidMeasure: Measure = {
  name: 'P9',
  title: 'paid executions, instant facilitator double over HTTP',
  async run({ quick, say }) {
    const world = await makeWorld();
    const facilitator = await facilitatorDouble();
    try {
      const unpaid = await world.start();
      const paid = await world.start({
        X402_ENABLED: 'true',
        X402_PAY_TO: newPayer().address,
        X402_FACILITATOR_URL: facilitator.url,
        DATA_DIR: join(world.folder, 'paid'),
      });
      const count = quick ? 150 : 600;
      const asked = await challenge(`${paid.url}${EXECUTE}`);
      const sides = {
        async ours() {
          // Signed before the clock starts: the buyer's work is not the relay's.
          const payments: Payment[] = [];
          for (let n = 0; n < count; n++) payments.push(await makePayment(newPayer(), asked));
          return executions(world, paid, 32, count, (n) => ({
            path: EXECUTE,
            headers: payments[n]?.headers[2] ?? {},
          }));
        },
        peer: () => executions(world, unpaid, 32, count, () => ({ path: EXECUTE })),
      };
      const rounds = await interleaved(quick ? 2 : 5, sides, say);
      const compared = rounds.map(({ ours, peer }) => ({ ours: ours.perSecond, peer: peer.perSecond }));
      const cpu = rounds.map(({ ours, peer }) => ({ ours: ours.cpu, peer: peer.cpu }));
      const titles = (title: string, unit: string) => ({
        measure: 'P9',
        title,
        unit,
        peer: 'unpaid executions',
      });
      return {
        rows: [
          row(titles('paid calls, c = 32', '/s'), ratioAtLeast(0.8), compared),
          row(titles('CPU a paid call', 'ms'), ratioAtMost(1.25), cpu),
        ],
      };
    } finally {
      await world.end();
      await facilitator.close();
    }
  },
};
