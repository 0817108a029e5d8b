// A stock client of each version buys a schedule of four runs: no further one is sold for which its wallet has no money.
// Nothing is settled before a run is due; three are settled, each at its time, and the fourth, whose money is spent by then, is
// skipped and not charged.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment as wrapV2, x402Client } from '@x402/fetch';
import { wrapFetchWithPayment as wrapV1 } from 'x402-fetch';
import { type Service, startService } from '#src/app/service.ts';
import { readServiceConfig } from '#src/config.ts';
import { startLocalFacilitator } from '#src/demo/payments/facilitator.ts';
import { readReceipt, runOf } from '#src/domain/receipt/payload.ts';
import { type ControlledChain, startControlledChain } from '#test/support/chain/controlled-chain.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { newPayer, type Payer } from '#test/support/chain/payer.ts';
import { moveClocks } from '#test/support/process/moved-clocks.ts';
import { waitFor } from '#test/support/process/service.ts';
import { makeWorld, type World } from '#test/support/world/service-world.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const PRICE = 3000n;

type Run = {
  readonly n: number;
  readonly state: string;
  readonly reason: string | null;
  readonly dueAt: string;
  readonly lateByMs: number | null;
  readonly links: { readonly job: string; readonly receipt: string | null } | null;
};
type Shown = {
  readonly scheduleId: string;
  readonly status: string;
  readonly fundedRuns: number;
  readonly runs: readonly Run[];
};
type Bought = {
  readonly scheduleId: string;
  readonly cancelToken: string | null;
  readonly run: { readonly n: number; readonly dueAt: string };
  readonly fundedRuns: number;
  readonly links: { readonly schedule: string; readonly runs: string };
};

describe('a paid schedule', needsAnvil(), () => {
  const clocks = moveClocks();
  let world: World;
  let chain: ControlledChain;
  let facilitator: Awaited<ReturnType<typeof startLocalFacilitator>>;
  let service: Service;
  const payTo = newPayer().address;

  before(async () => {
    world = await makeWorld({ embedded: true });
    chain = await startControlledChain();
    facilitator = await startLocalFacilitator({ rpcUrl: chain.url });
    service = await startService(
      readServiceConfig({
        ...world.env,
        PORT: '0',
        LOG_LEVEL: 'error',
        X402_ENABLED: 'true',
        X402_PAY_TO: payTo,
        X402_FACILITATOR_URL: facilitator.url,
        X402_RPC_URL: chain.url,
        SCHEDULES: 'on',
      }),
    );
    await service.opened;
  });
  after(async () => {
    clocks.restore();
    await service?.stop();
    await facilitator?.stop();
    await chain?.stop();
    await world?.end();
  });

  /** Moves the clocks of service, facilitator, clients and chain. */
  async function moveTo(ms: number): Promise<void> {
    clocks.moveTo(ms);
    await chain.advance(Math.max(1, Math.ceil(ms / 1000) - (await chain.time())));
  }

  const clientOf = (version: 1 | 2, payer: Payer) =>
    version === 2
      ? wrapV2(fetch, registerExactEvmScheme(new x402Client(), { signer: payer }))
      : wrapV1(fetch as typeof globalThis.fetch, payer);

  async function read(address: string): Promise<Shown> {
    return waitFor('the schedule', async () => {
      const response = await fetch(address);
      const body = (await response.json()) as Shown;
      return response.status === 200 && body;
    });
  }

  for (const version of [2, 1] as const)
    test(`bought by a stock client of version ${version}: three runs settled at their times, the fourth skipped`, async () => {
      const payer = newPayer();
      await chain.mint([payer.address], 4n * PRICE);
      const path = `/scheduled-${version}`;
      const paying = clientOf(version, payer);
      const startAt = new Date(Date.now() + HOUR).toISOString();
      const send = (url: string, body: unknown) =>
        paying(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      const post = async (url: string, body: unknown): Promise<Bought> => {
        const response = await send(url, body);
        const answer = await response.json();
        assert.equal(response.status, 201, JSON.stringify(answer));
        return answer as Bought;
      };
      const first = await post(`${service.url}/api/schedules/webhook`, {
        webhook: { url: world.target.url(path), body: { version } },
        schedule: { type: 'interval', everyMinutes: 2880, startAt },
      });
      assert.ok(first.cancelToken);
      const bought = [first];
      for (let n = 2; n <= 4; n++) bought.push(await post(first.links.runs, {}));
      assert.deepEqual(
        bought.map(({ run }) => [run.n, Date.parse(run.dueAt) - Date.parse(startAt)]),
        [1, 2, 3, 4].map((n) => [n, (n - 1) * 2 * DAY]),
      );
      assert.equal(bought.at(-1)?.fundedRuns, 4);
      assert.equal((await send(first.links.runs, {})).status, 402);
      assert.equal((await clientOf(2, newPayer())(first.links.runs, { method: 'POST' })).status, 403);
      const hits = () => world.target.requests.filter((request) => request.path === path).length;
      assert.equal(await chain.balanceOf(payer.address), 4n * PRICE);
      for (const [at, { run }] of bought.entries()) {
        await moveTo(Date.parse(run.dueAt) - 30_000);
        assert.deepEqual([hits(), await chain.balanceOf(payer.address)], [at, BigInt(4 - at) * PRICE]);
        // The money of the fourth run is spent for a call.
        const call = { url: world.target.url('/other') };
        if (at === 3) assert.equal((await send(`${service.url}/api/execute/webhook`, call)).status, 200);
        await moveTo(Date.parse(run.dueAt) + 500);
        const over = await waitFor(`run ${run.n}`, async () => {
          const found = (await read(first.links.schedule)).runs.find(({ n }) => n === run.n);
          return (found?.state === 'executed' || found?.state === 'skipped') && found;
        });
        assert.equal(over.state, at < 3 ? 'executed' : 'skipped', JSON.stringify(over));
        assert.deepEqual(
          [hits(), await chain.balanceOf(payer.address)],
          [Math.min(3, at + 1), BigInt(at === 3 ? 0 : 3 - at) * PRICE],
        );
      }
      const { runs } = await read(first.links.schedule);
      const skipped = runs.find(({ n }) => n === 4);
      assert.match(skipped?.reason ?? '', /balance|funds/);
      assert.equal(skipped?.links, null);
      for (const run of runs.filter(({ state }) => state === 'executed')) {
        const receipt = await waitFor('the receipt', async () => {
          const response = await fetch(run.links?.receipt ?? '');
          const body = (await response.json()) as { jws: string; verified: boolean };
          // The clock jumps by days, past the time by which the transparency log has to contain it.
          return response.status === 200 && body.verified && body;
        });
        const { payload } = readReceipt(receipt.jws);
        assert.ok(payload);
        const stated = runOf(payload);
        assert.deepEqual([stated?.id, stated?.run, stated?.dueAt], [first.scheduleId, run.n, run.dueAt]);
        assert.equal(payload.payment?.payer, payer.address.toLowerCase());
        await waitFor('a report in which every check holds', async () => {
          const report = await fetch((run.links?.job ?? '').replace('/api/jobs/', '/api/verify/jobs/'));
          return ((await report.json()) as { ok: boolean }).ok;
        });
      }
      const text = JSON.stringify(await read(first.links.schedule));
      assert.ok(!text.includes(path) && !text.toLowerCase().includes(payer.address.toLowerCase()));
    });

  test('a schedule is cancelled by its token alone, and nothing of it is charged', async () => {
    const payer = newPayer();
    await chain.mint([payer.address], PRICE);
    const response = await clientOf(2, payer)(`${service.url}/api/schedules/webhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        webhook: { url: world.target.url('/cancelled') },
        schedule: { type: 'once', runAt: new Date(Date.now() + HOUR).toISOString() },
      }),
    });
    assert.equal(response.status, 201);
    const { cancelToken, links } = (await response.json()) as Bought;
    const cancel = (token: string) =>
      fetch(links.schedule, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } });
    assert.equal((await cancel('x'.repeat(43))).status, 404);
    assert.equal((await cancel(`${cancelToken}`)).status, 200);
    const shown = await read(links.schedule);
    assert.deepEqual([shown.status, shown.runs.map(({ reason }) => reason)], ['cancelled', ['cancelled']]);
    await moveTo(Date.now() + HOUR + 2000);
    const again = await cancel(`${cancelToken}`);
    assert.equal(again.status, 200);
    assert.equal(await chain.balanceOf(payer.address), PRICE);
    assert.equal(world.target.requests.filter(({ path }) => path === '/cancelled').length, 0);
  });
});
