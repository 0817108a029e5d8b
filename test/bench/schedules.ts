// P12: paid calls while many runs of schedules are due at one instant, against the same relay while none is.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '#src/domain/limits.ts';
import { SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { challenge, makePayment, newPayer } from '#test/support/chain/payer.ts';
import { startChainNode } from '#test/support/chain/scripted-node.ts';
import { waitFor } from '#test/support/process/service.ts';
import { each } from '#test/support/world/paid-call.ts';
import { get, makeWorld, post } from '#test/support/world/service-world.ts';
import { charging, paidTurns } from './calls.ts';
import { startPeer } from './processes.ts';
import { absoluteAtMost, interleaved, type Measure, ratioAtLeast, row } from './rounds.ts';

const ROUTE = '/api/schedules/webhook';
/** From the first purchase to the instant at which all runs are due. */
const BUYING_MS = 25_000;
/** A schedule a purchase: a client address buys at most so many a day. */
const PER_CLIENT = SCHEDULE_LIMITS.schedulesPerClient.max / 2;
const LAST_RUN = { limitMs: 300_000, everyMs: 20 };

type Shown = { readonly runs: readonly { readonly state: string; readonly lateByMs: number | null }[] };

export const schedulesMeasure: Measure = {
  name: 'P12',
  title: 'paid executions while runs of schedules are due',
  async run(options) {
    const world = await makeWorld({ embedded: true });
    const facilitator = await startPeer('facilitator.ts');
    const chain = await startChainNode();
    try {
      const relay = await world.start({
        ...charging(facilitator, chain),
        DATA_DIR: join(world.folder, 'scheduled'),
        SCHEDULES: 'on',
        TRUSTED_PROXIES: '127.0.0.0/8',
      });
      const [runs, calls] = [options.count(600, 150, 16), options.count(600, 200, 32)];
      const buyingMs = options.count(BUYING_MS, BUYING_MS, 15_000);
      let clients = 0;
      /** Returns the schedules, whose runs are due at `dueMs`, each of a payer of its own. */
      async function buy(dueMs: number): Promise<readonly string[]> {
        const order = (n: number) => ({
          webhook: { url: `${world.target.url('/run', '127.0.0.1')}?n=${n}`, body: { n } },
          schedule: { type: 'once', runAt: new Date(dueMs).toISOString() },
        });
        const asked = await challenge(`${relay.url}${ROUTE}`, order(0));
        const numbers = Array.from({ length: runs }, (_, n) => n);
        const first = clients;
        clients += Math.ceil(runs / PER_CLIENT);
        return each(numbers, async (n) => {
          const { headers } = await makePayment(newPayer(), asked);
          const client = first + Math.floor(n / PER_CLIENT);
          const from = { 'x-forwarded-for': `192.0.2.${client % 250}` };
          return waitFor('room for the purchase', async () => {
            const answer = await post<{ scheduleId: string }>(`${relay.url}${ROUTE}`, order(n), {
              ...headers[2],
              ...from,
            });
            if (![201, 409, 429].includes(answer.status)) throw new Error(JSON.stringify(answer.body));
            return answer.status === 201 && answer.body.scheduleId;
          });
        });
      }
      const settled = async () =>
        ((await (await fetch(`${facilitator.url}/`)).json()) as { settled: number }).settled;
      const turn = await paidTurns(world, relay, facilitator, { alone: false });
      const lastMs: number[] = [];
      await turn(calls);
      async function whileDue() {
        const dueMs = Date.now() + buyingMs;
        const schedules = await buy(dueMs);
        if (Date.now() >= dueMs) throw new Error('the purchases took longer than the time to their run');
        const before = await settled();
        // The calls are in flight when the runs become due.
        await sleep(Math.max(0, dueMs - Date.now() - 100));
        const measured = await turn(calls);
        await waitFor('the last run', async () => (await settled()) === before + runs + calls, LAST_RUN);
        for (const id of schedules) {
          const run = await waitFor('a run to be executed', async () => {
            const { body } = await get<Shown>(`${relay.url}/api/schedules/${id}`);
            return body.runs[0]?.state === 'executed' && body.runs[0];
          });
          lastMs.push(run.lateByMs ?? Number.POSITIVE_INFINITY);
        }
        options.say(`the last of ${runs} runs began ${Math.max(...lastMs.slice(-runs))} ms late`);
        return measured;
      }
      const rounds = await interleaved(options, { ours: whileDue, peer: () => turn(calls) });
      const titles = (title: string, unit: string) => ({ measure: 'P12', title, unit, peer: 'none is due' });
      const compared = rounds.map(({ ours, peer }) => ({ ours: ours.perSecond, peer: peer.perSecond }));
      const latest = Math.max(...lastMs) / 1000;
      return {
        rows: [
          row(titles(`paid calls, c = ${LIMITS.verifiesInFlight.max}`, '/s'), ratioAtLeast(0.9), compared),
          row({ ...titles(`start of the last of ${runs} runs`, 's'), peer: '' }, absoluteAtMost(60), [
            { ours: latest, peer: 0 },
          ]),
        ],
        notes: [
          `none is due: the same relay. ${runs} runs of as many payers are due at one instant, each is verified and settled by the facilitator double of P9, and so is each call.`,
        ],
      };
    } finally {
      await world.end();
      await facilitator.stop();
      await chain.down();
    }
  },
};
