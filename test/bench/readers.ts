// P10: paid executions while 64 clients read public figures as fast as they are answered, against the same without readers.

import { LIMITS } from '#src/domain/limits.ts';
import { startChainNode } from '#test/support/chain/scripted-node.ts';
import { makeWorld } from '#test/support/world/service-world.ts';
import { charging, paidTurns } from './calls.ts';
import type { Turn } from './load.ts';
import { startPeer } from './processes.ts';
import { type Goal, interleaved, type Measure, NO_GOAL, ratioAtLeast, row } from './rounds.ts';

type From = 'addresses' | 'loopback';
type Reads = { readonly served: number; readonly refused: number; readonly seconds: number };

/** Of all turns but the first, which is not counted. */
function rates(turns: readonly Reads[]): string {
  const sum = (of: keyof Reads) => turns.slice(1).reduce((total, turn) => total + turn[of], 0);
  const rate = (of: keyof Reads) => Math.round(sum(of) / sum('seconds'));
  return `${rate('served')} reads a second answered with 200, ${rate('refused')} with 429`;
}

export const readersMeasure: Measure = {
  name: 'P10',
  title: 'paid executions beside readers of public figures',
  async run(options) {
    const world = await makeWorld({ embedded: true });
    const facilitator = await startPeer('facilitator.ts');
    const chain = await startChainNode();
    try {
      const relay = await world.start({
        ...charging(facilitator, chain),
        TRUSTED_PROXIES: '127.0.0.0/8',
      });
      const readers = await startPeer('readers.ts', { RELAY: relay.url });
      try {
        const paid = await paidTurns(world, relay, facilitator);
        const count = options.count(600, 200, 32);
        const counted: Record<From, Reads[]> = { addresses: [], loopback: [] };
        const beside = (from: From) => async () => {
          await fetch(`${readers.url}/on/${from}`, { method: 'POST' });
          const begun = performance.now();
          const turn = await paid(count);
          const seconds = (performance.now() - begun) / 1000;
          const answer = await fetch(`${readers.url}/off`, { method: 'POST' });
          const statuses = (await answer.json()) as Record<string, number>;
          counted[from].push({ served: statuses[200] ?? 0, refused: statuses[429] ?? 0, seconds });
          return turn;
        };
        const sides = {
          addresses: beside('addresses'),
          loopback: beside('loopback'),
          peer: () => paid(count),
        };
        // The relay has run for a while, its code compiled.
        for (let turns = options.count(6, 1, 0); turns > 0; turns--) await sides.peer();
        const rounds = await interleaved(options, sides);
        const titles = { measure: 'P10', peer: 'the same without readers' };
        const rowOf = (from: From, title: string, unit: string, figure: keyof Turn, goal: Goal) =>
          row(
            { ...titles, title, unit },
            goal,
            rounds.map((each) => ({ ours: each[from][figure], peer: each.peer[figure] })),
          );
        const callers = `c = ${LIMITS.verifiesInFlight.max}`;
        return {
          rows: [
            rowOf('addresses', `paid calls, ${callers}, 64 readers`, '/s', 'perSecond', ratioAtLeast(0.9)),
            rowOf('addresses', 'p99 of a paid call, 64 readers', 'ms', 'p99', NO_GOAL),
            rowOf('addresses', 'CPU a paid call, 64 readers', 'ms', 'cpu', NO_GOAL),
            rowOf('loopback', `paid calls, ${callers}, 64 readers on loopback`, '/s', 'perSecond', NO_GOAL),
            rowOf('loopback', 'CPU a paid call, 64 readers on loopback', 'ms', 'cpu', NO_GOAL),
          ],
          notes: [
            `64 readers: closed loops over monitoring, status page, trust and lists, each request with other parameters, in a process of their own; they ignore Retry-After. With a client address each: ${rates(counted.addresses)}. On loopback, where no address is limited: ${rates(counted.loopback)}.`,
          ],
        };
      } finally {
        await readers.stop();
      }
    } finally {
      await world.end();
      await facilitator.stop();
      await chain.down();
    }
  },
};
