// P10: paid executions while 64 clients read public figures as fast as they are answered, against the same without readers.
import { LIMITS } from '#src/domain/limits.ts';
import { newPayer } from '#test/support/payer.ts';
import { makeWorld } from '#test/support/service-world.ts';
import { paidTurns } from './calls.ts';
import { startPeer } from './processes.ts';
import { interleaved, type Measure, NO_GOAL, ratioAtLeast, row } from './rounds.ts';

export const readersMeasure: Measure = {
  name: 'P10',
  title: 'paid executions beside readers of public figures',
  async run(options) {
    const world = await makeWorld({ embedded: true });
    const facilitator = await startPeer('facilitator.ts');
    try {
      const relay = await world.start({
        X402_ENABLED: 'true',
        X402_PAY_TO: newPayer().address,
        X402_FACILITATOR_URL: facilitator.url,
        X402_RPC_URL: 'http://127.0.0.1:9',
        TRUSTED_PROXIES: '127.0.0.0/8',
      });
      const readers = await startPeer('readers.ts', { RELAY: relay.url });
      try {
        const paid = await paidTurns(world, relay, facilitator);
        const count = options.count(600, 200, 32);
        let reads = { served: 0, refused: 0, seconds: 0 };
        const counted: (typeof reads)[] = [];
        const sides = {
          async ours() {
            await fetch(`${readers.url}/on`, { method: 'POST' });
            const begun = performance.now();
            const turn = await paid(count);
            const seconds = (performance.now() - begun) / 1000;
            const statuses = await (await fetch(`${readers.url}/off`, { method: 'POST' })).json();
            const of = (status: number) => Number((statuses as Record<string, number>)[status] ?? 0);
            reads = { served: of(200), refused: of(429), seconds };
            counted.push(reads);
            return turn;
          },
          peer: () => paid(count),
        };
        // The relay has run for a while, its code compiled.
        for (let turns = options.count(6, 1, 0); turns > 0; turns--) await sides.peer();
        const rounds = await interleaved(options, sides);
        const compared = rounds.map(({ ours, peer }) => ({ ours: ours.perSecond, peer: peer.perSecond }));
        const latency = rounds.map(({ ours, peer }) => ({ ours: ours.p99, peer: peer.p99 }));
        const titles = { measure: 'P10', peer: 'the same without readers' };
        const rate = (of: 'served' | 'refused') =>
          Math.round(
            counted.reduce((sum, each) => sum + each[of], 0) /
              counted.reduce((sum, each) => sum + each.seconds, 0),
          );
        return {
          rows: [
            row(
              { ...titles, title: `paid calls, c = ${LIMITS.verifiesInFlight.max}, 64 readers`, unit: '/s' },
              ratioAtLeast(0.9),
              compared,
            ),
            row({ ...titles, title: 'p99 of a paid call', unit: 'ms' }, NO_GOAL, latency),
          ],
          notes: [
            `64 clients, each with an address of its own, in a process of their own: closed loops over monitoring, status page, trust and lists, each request with other parameters; they ignore Retry-After. ${rate('served')} reads a second were answered with 200, ${rate('refused')} with 429.`,
          ],
        };
      } finally {
        await readers.stop();
      }
    } finally {
      await world.end();
      await facilitator.stop();
    }
  },
};
