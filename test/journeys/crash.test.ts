// The process is killed repeatedly and restarted on the same files: nothing acknowledged is lost, nothing is sent twice, no
// job stays running, and every started job has its receipt.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sleep } from '#src/lib/time.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { jobTypes, recordedIn } from '#test/support/world/service-log.ts';
import { assertVerifiesOffline, sendsRecorded, UNKNOWN_SENDS } from '#test/support/world/service-receipts.ts';
import { assertStands } from '#test/support/world/service-stands.ts';
import {
  type Answered,
  type Executed,
  execute,
  get,
  makeWorld,
  type World,
} from '#test/support/world/service-world.ts';

type Call = {
  readonly n: number;
  readonly request: Readonly<Record<string, unknown>>;
  readonly keyed: boolean;
  /** null: the connection was cut. */
  answer: Answered<Executed> | null;
};

/** No job stays running: the next process closes the jobs of a dead one. */
async function recovered(service: Service): Promise<void> {
  await waitFor('no job is running', async () => {
    const { status, body } = await get<{ stats: { running: number } }>(
      `${service.url}/api/monitoring/executions`,
    );
    return status === 200 && body.stats.running === 0;
  });
}

/** A small repeatable generator for the moments of the kills. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe('kill -9', () => {
  /** Each kind of moment comes once; more of them in the full set. */
  const [KILLS, CALLERS] = LONG ? [12, 20] : [3, 8];
  let world: World;
  before(async () => {
    world = await makeWorld({ embedded: true });
  });
  after(() => world.end());

  test(`at ${KILLS} moments under ${CALLERS} concurrent calls`, { timeout: 300_000 }, async () => {
    const roll = dice(20_261_120);
    const { target } = world;
    const calls: Call[] = [];
    let onRequest = () => {};
    target.answer(async (request) => {
      onRequest();
      const { n } = JSON.parse(request.body.toString());
      await sleep(n % 30);
      return { status: n % 7 === 0 ? 500 : 200 };
    });

    async function callOnce(service: Service): Promise<Call> {
      const n = calls.length;
      const keyed = n % 3 !== 0;
      const request = {
        url: target.url(`/${n}`),
        body: { n },
        ...(keyed ? { idempotencyKey: `call ${n}` } : {}),
      };
      const call: Call = { n, request, keyed, answer: null };
      calls.push(call);
      // A look-up that is late on a busy machine is refused: nothing was recorded, and the call is made again.
      do call.answer = await execute(service, request).catch(() => null);
      while (call.answer?.status === 400);
      return call;
    }

    /** Under load, until a moment that is a time, a request's arrival at the target, or an answer. */
    async function killUnderLoad(service: Service, round: number): Promise<void> {
      let over = false;
      let answers = 0;
      const count = 1 + roll(3 * CALLERS);
      const moment = new Promise<void>((resolve) => {
        let requests = 0;
        if (round % 3 === 0) setTimeout(resolve, 20 + roll(400));
        onRequest = () => {
          if (round % 3 === 1 && ++requests === count) resolve();
        };
        const look = setInterval(() => {
          if (round % 3 === 2 && answers >= count) resolve();
          if (over) clearInterval(look);
        }, 1);
      });
      const callers = Array.from({ length: CALLERS }, async () => {
        while (!over) {
          const { answer } = await callOnce(service);
          if (answer === null) return;
          answers++;
        }
      });
      await moment;
      over = true;
      await service.kill();
      await Promise.all(callers);
    }

    const cuts: number[] = [];
    let checked = 0;
    let service = await world.start();
    for (let round = 0; round < KILLS; round++) {
      await killUnderLoad(service, round);
      service = await world.start();
      await recovered(service);
      const fresh = calls.slice(checked);
      checked = calls.length;
      cuts.push(fresh.filter(({ answer }) => answer === null).length);
      for (const call of fresh) {
        if (call.answer !== null || !call.keyed) continue;
        const again = await execute(service, call.request);
        assert.ok([200, 502].includes(again.status), `${again.status} ${JSON.stringify(again.body)}`);
        await assertStands(service, again.body);
        call.answer = again;
      }
    }
    const acknowledged = calls.filter((call) => call.answer !== null);
    assert.ok(acknowledged.length > (KILLS * CALLERS) / 2, `${acknowledged.length} answers`);
    assert.ok(cuts.filter((count) => count > 0).length >= KILLS / 2, `calls cut in each round: ${cuts}`);
    for (const { answer } of acknowledged) {
      assert.ok(answer);
      assert.equal(answer.status, answer.body.job.status === 'succeeded' ? 200 : 502);
      await assertStands(service, answer.body);
    }
    assertSentOnce(calls);
    await assertAllClosed(service, calls);
  });

  function assertSentOnce(calls: readonly Call[]): void {
    const { requests } = world.target;
    const ids = requests.map(({ headers }) => headers['webhook-id']);
    assert.equal(new Set(ids).size, ids.length, 'no job was sent twice');
    const times = new Map<string, number>();
    for (const { path } of requests) times.set(path, (times.get(path) ?? 0) + 1);
    for (const { n, answer } of calls) {
      const sent = times.get(`/${n}`) ?? 0;
      const { least, most } = answer === null ? UNKNOWN_SENDS : sendsRecorded(answer.body.receipt.jws);
      assert.ok(
        least <= sent && sent <= most,
        `call ${n} was sent ${sent} times, expected ${least} to ${most}`,
      );
    }
  }

  /** From the log, after the service has ended. */
  async function assertAllClosed(service: Service, calls: readonly Call[]): Promise<void> {
    const jwks = (await get(`${service.url}/.well-known/jwks.json`)).body;
    const { code } = await service.stop();
    assert.equal(code, 0);
    const events = await recordedIn(world.dataDir);
    const jobs = jobTypes(events);
    for (const [id, types] of jobs) {
      assert.deepEqual(types, ['JobStarted', 'AttemptMade', 'JobCompleted', 'ReceiptSigned'], id);
    }
    for (const { headers } of world.target.requests) assert.ok(jobs.has(headers['webhook-id'] ?? ''));
    for (const { answer } of calls) assert.ok(answer === null || jobs.has(answer.body.job.id));
    const receipts = events.filter(({ type }) => type === 'ReceiptSigned');
    assert.equal(receipts.length, jobs.size);
    for (const { data } of receipts) await assertVerifiesOffline(String(data.jws), jwks);
  }
});
