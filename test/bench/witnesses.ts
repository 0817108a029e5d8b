// P11: executions of a relay whose two witnesses hang, against the same relay without witnesses.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { C2spWitness } from '#test/support/witness/c2sp-witness.ts';
import { makeWorld } from '#test/support/world/service-world.ts';
import { executions } from './calls.ts';
import type { Turn } from './load.ts';
import { interleaved, type Measure, NO_GOAL, row } from './rounds.ts';

const CALLERS = 8;
const EXECUTE = '/api/execute/webhook';

/** A server that accepts connections and answers nothing. */
async function hangingServer() {
  let connections = 0;
  const open = new Set<{ destroy(): unknown }>();
  const server = createServer((socket) => {
    connections++;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    connections: () => connections,
    close() {
      for (const socket of open) socket.destroy();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

export const witnessesMeasure: Measure = {
  name: 'P11',
  title: 'executions with two witnesses that hang',
  async run(options) {
    const world = await makeWorld({ embedded: true });
    const servers = [await hangingServer(), await hangingServer()];
    try {
      const policy = join(world.folder, 'witnesses.policy');
      const lines = servers.map(({ url }, n) => {
        const { vkey } = new C2spWitness({ name: `witness.example/w${n + 1}` });
        return `witness w${n + 1} ${vkey} ${url}`;
      });
      writeFileSync(policy, [...lines, 'group both all w1 w2', 'quorum both', ''].join('\n'));
      const unwitnessed = await world.start();
      const witnessed = await world.start({
        DATA_DIR: join(world.folder, 'witnessed'),
        WITNESS_POLICY_FILE: policy,
        // The least that can be configured. A witness that hangs is asked less and less all the same.
        WITNESS_INTERVAL_SECONDS: '2',
      });
      const count = options.count(1200, 300, 24);
      const turn = (relay: typeof unwitnessed, calls = count) =>
        executions(world, relay, CALLERS, calls, () => ({ path: EXECUTE }));
      const warmUp = options.count(2000, 300, 0);
      await turn(unwitnessed, warmUp);
      await turn(witnessed, warmUp);
      const asked = () => servers.reduce((sum, server) => sum + server.connections(), 0);
      const rounds = await interleaved(options, {
        ours: () => turn(witnessed),
        peer: () => turn(unwitnessed),
      });
      if (asked() === 0) throw new Error('no witness was asked');
      const rowOf = (title: string, unit: string, figure: keyof Turn) =>
        row(
          { measure: 'P11', title: `${title}, c = ${CALLERS}`, unit, peer: 'the same without witnesses' },
          NO_GOAL,
          rounds.map(({ ours, peer }) => ({ ours: ours[figure], peer: peer[figure] })),
        );
      return {
        rows: [
          rowOf('calls', '/s', 'perSecond'),
          rowOf('p99', 'ms', 'p99'),
          rowOf('CPU a call', 'ms', 'cpu'),
        ],
        notes: [
          `the same without witnesses: this relay with no WITNESS_POLICY_FILE. The two witnesses accept every connection and answer nothing; both have to cosign, and they were asked ${asked()} times in all.`,
        ],
      };
    } finally {
      await world.end();
      for (const server of servers) await server.close();
    }
  },
};
