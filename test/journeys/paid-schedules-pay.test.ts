// relay pay --schedule, as a process of its own, against the service and a local chain: it is killed between two answers, the
// service is started again, and still each of three runs is paid for once, charged when it is due and not before.
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createPublicClient, type Hex, http, parseAbi } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { type Service, startService } from '#src/app/service.ts';
import { readServiceConfig } from '#src/config.ts';
import { TOKEN } from '#src/demo/payments/chain.ts';
import { startLocalFacilitator } from '#src/demo/payments/facilitator.ts';
import { type ControlledChain, startControlledChain } from '#test/support/chain/controlled-chain.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { newPayer } from '#test/support/chain/payer.ts';
import { runCli } from '#test/support/process/cli.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import { moveClocks } from '#test/support/process/moved-clocks.ts';
import { type FrontAnswer, type RelayFront, startRelayFront } from '#test/support/process/relay-front.ts';
import { waitFor } from '#test/support/process/service.ts';
import { makeWorld, type World } from '#test/support/world/service-world.ts';

const HOUR = 3_600_000;
const PRICE = 3000n;

describe('relay pay --schedule', needsAnvil(), () => {
  const clocks = moveClocks();
  let world: World;
  let chain: ControlledChain;
  let facilitator: Awaited<ReturnType<typeof startLocalFacilitator>>;
  let front: RelayFront;
  let service: Service;
  const payTo = newPayer().address;

  async function start(): Promise<void> {
    service = await startService(
      readServiceConfig({
        ...world.env,
        PORT: '0',
        LOG_LEVEL: 'error',
        PUBLIC_BASE_URL: front.url,
        X402_ENABLED: 'true',
        X402_PAY_TO: payTo,
        X402_FACILITATOR_URL: facilitator.url,
        X402_RPC_URL: chain.url,
        SCHEDULES: 'on',
      }),
    );
    await service.opened;
    front.behind(service.url);
  }

  before(async () => {
    [world, chain, front] = await Promise.all([
      makeWorld({ embedded: true }),
      startControlledChain(),
      startRelayFront(),
    ]);
    facilitator = await startLocalFacilitator({ rpcUrl: chain.url });
    await start();
  });
  after(async () => {
    clocks.restore();
    await service?.stop();
    await front?.down();
    await facilitator?.stop();
    await chain?.stop();
    await world?.end();
  });

  /** Moves the clocks of service, facilitator and chain. */
  async function moveTo(ms: number): Promise<void> {
    clocks.moveTo(ms);
    await chain.advance(Math.max(1, Math.ceil(ms / 1000) - (await chain.time())));
  }

  /** The authorization of a payment header, as anyone could send it to the chain. */
  async function charge(header: string): Promise<void> {
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString());
    const { from, to, value, validAfter, validBefore, nonce } = payload.authorization;
    const times = [BigInt(value), BigInt(validAfter), BigInt(validBefore)] as const;
    const abi = parseAbi([
      'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
    ]);
    const args = [from, to, ...times, nonce, payload.signature] as const;
    const functionName = 'transferWithAuthorization';
    await createPublicClient({ transport: http(chain.url) }).simulateContract({
      ...{ address: TOKEN, abi, functionName, args, account: privateKeyToAccount(generatePrivateKey()) },
    });
  }

  test('killed and repeated: three runs are bought once, charged when they are due, and cancelled by the printed line', async () => {
    const key: Hex = generatePrivateKey();
    const payer = privateKeyToAccount(key).address;
    await chain.mint([payer], 3n * PRICE);
    const startMs = Date.now() + HOUR;
    const file = join(world.folder, 'hourly.json');
    const startAt = new Date(startMs).toISOString();
    const order = {
      webhook: { url: world.target.url('/run'), body: { order: 1 } },
      schedule: { type: 'interval', everyMinutes: 60, startAt },
    };
    writeFileSync(file, JSON.stringify(order));
    const args = ['pay', '--schedule', file, '--runs', '3', '--max-usd', '0.009', '--relay', front.url];
    args.push('--pay-to', payTo);
    const env = { RELAY_BUYER_PRIVATE_KEY: key };
    let paid = 0;
    front.rule(async ({ headers }, forward) => {
      const answer = await forward();
      if (headers['payment-signature'] === undefined || ++paid < 2) return answer;
      return new Promise<FrontAnswer>(() => undefined);
    });
    const first = startCli(args, { env });
    await waitFor('the answer to the second payment', () => paid === 2);
    first.signal('SIGKILL');
    await first.ended;
    front.rule(null);
    await service.stop();
    await start();

    const again = await runCli([...args, '--json'], { env });
    const bought = JSON.parse(again.stdout);
    assert.deepEqual([again.code, bought.outcome, bought.signedUsd], [0, 'funded', '0.009'], again.stderr);
    const runs = [0, 1, 2].map((n) => [n + 1, new Date(startMs + n * HOUR).toISOString(), 'funded']);
    assert.deepEqual(
      bought.runs.map(({ n, dueAt, state }: Record<string, unknown>) => [n, dueAt, state]),
      runs,
    );
    const nonceOf = (header: string) =>
      JSON.parse(Buffer.from(header, 'base64').toString()).payload.authorization.nonce;
    assert.deepEqual([front.payments.length, new Set(front.payments.map(nonceOf)).size], [4, 3]);
    const saved = JSON.parse(readFileSync(`${file}.bought`, 'utf8'));
    assert.deepEqual(
      [statSync(`${file}.bought`).mode & 0o777, bought.cancelToken],
      [0o600, saved.cancelToken],
    );

    const [payment = ''] = front.payments;
    await assert.rejects(charge(payment), /not yet valid/i);
    for (const n of [0, 1, 2]) {
      await moveTo(startMs + n * HOUR - 90_000);
      assert.deepEqual(
        [world.target.requests.length, await chain.balanceOf(payer)],
        [n, BigInt(3 - n) * PRICE],
      );
      await moveTo(startMs + n * HOUR + 500);
      await waitFor(`run ${n + 1}`, async () => {
        const shown = await (await fetch(bought.links.schedule)).json();
        const { runs: found } = shown as { runs: readonly { n: number; state: string }[] };
        return found.some((run) => run.n === n + 1 && run.state === 'executed');
      });
      assert.deepEqual(
        [world.target.requests.length, await chain.balanceOf(payer)],
        [n + 1, BigInt(2 - n) * PRICE],
      );
    }

    const { code, stdout } = await runCli(args, { env });
    assert.equal(code, 0, stdout);
    assert.equal(stdout.match(/^\d {4}\S+Z {2}executed$/gm)?.length, 3, stdout);
    assert.match(stdout, /payments signed +\$0\.009;/);
    assert.match(stdout, /\nBought\. Paid for: 3 of 3 runs\.\n$/);
    const [, token = ''] =
      /curl -X DELETE -H 'authorization: Bearer ([^']+)' 'http:\/\/[^']+\/api\/schedules\/sch_[^']+'/.exec(
        stdout,
      ) ?? [];
    const cancelled = await fetch(bought.links.schedule, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(cancelled.status, 200);
    assert.equal(front.payments.length, 4);
  });

  test('the relay refuses midway: exit 1, and the runs that are paid for are named', async () => {
    const key: Hex = generatePrivateKey();
    await chain.mint([privateKeyToAccount(key).address], PRICE);
    const file = join(world.folder, 'twice.json');
    clocks.setBack();
    const order = {
      webhook: { url: world.target.url('/twice') },
      schedule: { type: 'interval', everyMinutes: 60, startAt: new Date(Date.now() + HOUR).toISOString() },
    };
    writeFileSync(file, JSON.stringify(order));
    let paid = 0;
    front.rule(async ({ headers }, forward) => {
      if (headers['payment-signature'] === undefined || ++paid < 2) return forward();
      const body = JSON.stringify({ error: { code: 'too_late', message: 'No more runs.' } });
      return { status: 409, headers: { 'content-type': 'application/json' }, body };
    });
    const args = ['pay', '--schedule', file, '--runs', '3', '--max-usd', '0.01', '--relay', front.url];
    const { code, stdout } = await runCli([...args, '--pay-to', payTo], {
      env: { RELAY_BUYER_PRIVATE_KEY: key },
    });
    front.rule(null);
    assert.equal(code, 1, stdout);
    assert.match(stdout, /^1 {4}\S+Z {2}funded$/m);
    assert.match(stdout, /Paid for: 1 of 3 runs\. answer: [^\n]*409 too_late: No more runs\.\n$/);
  });
});
