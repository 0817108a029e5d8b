// Two processes over one log and one PostgreSQL: a payment buys one call at either process, also if one of them
// dies.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runCli } from '#test/support/cli.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { startNodeFront } from '#test/support/node-front.ts';
import {
  assertDelivered,
  assertOneCall,
  assertSaid,
  each,
  send,
  sendPatiently,
} from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { type Service, waitFor } from '#test/support/service.ts';

const anvil = needsAnvil();
const postgres = needsPostgres();
const needs = { skip: anvil.skip || postgres.skip };
/** How long a process observes another's settlement before it takes it over. */
const SETTLEMENT_WATCH_MS = 45_000;

describe('two processes and one payment', needs, () => {
  let server: PostgresServer;
  let paid: PaidWorld;
  let mourning: PaidWorld;
  let left: Service;
  let right: Service;
  let survivor: Service;
  /** In settle when their process died: the money had moved for every other one. */
  let orphans: readonly Sample[];
  let died = 0;
  let databaseUrl = '';

  before(async () => {
    server = await postgresServer();
    paid = await makePaidWorld({ processes: 1 });
    mourning = await makePaidWorld({ processes: 1 });
    databaseUrl = await server.newDatabase();
    const DATABASE_URL = databaseUrl;
    const OTHER_URL = await server.newDatabase();
    // One after the other: the first makes the key file.
    const dying = await mourning.start({ DATABASE_URL: OTHER_URL });
    survivor = await mourning.start({ DATABASE_URL: OTHER_URL });
    left = await paid.start({ DATABASE_URL });
    right = await paid.start({ DATABASE_URL });

    orphans = await mourning.samples(dying, 'orphan');
    const nonces = orphans.map(({ payment }) => payment.nonce.toLowerCase());
    mourning.proxy.rule(({ kind, nonce }) => {
      if (kind === 'verify') return 'pass';
      return nonces.indexOf(nonce) % 2 === 0 ? 'hang' : 'hang_after';
    });
    const calls = orphans.map((sample) => sendPatiently(dying, sample).catch(() => null));
    await waitFor('all are in settle', () =>
      orphans.every(({ payment }, n) => {
        const [call] = mourning.proxy.callsOf('settle', payment.nonce);
        return call !== undefined && (n % 2 === 0 || call.moved);
      }),
    );
    await dying.kill();
    died = performance.now();
    await Promise.all(calls);
    mourning.proxy.rule(() => 'pass');
    // The survivor observes from its first read on.
    await each(orphans, async (sample) =>
      assertSaid(await send(survivor, sample), 409, 'idempotency_in_progress'),
    );
  });
  after(async () => {
    await paid.end();
    await mourning?.end();
    await server?.remove();
  });

  // One process verifies one copy of a payment at a time; two processes may verify two.
  test('a copy that the other verifies after the first has settled: a replay or 409, not 402', async () => {
    const samples = await paid.samples(left, 'late-copy');
    paid.proxy.rule(async ({ kind, nonce, nth }) => {
      const seen = (what: 'verify' | 'settle') => paid.proxy.callsOf(what, nonce);
      if (kind === 'verify' && nth === 1) await waitFor('the copy', () => seen('verify').length === 2);
      if (kind === 'verify' && nth === 2) {
        await waitFor('the money', () => seen('settle').some(({ moved }) => moved));
      }
      return 'pass' as const;
    });
    await each(samples, async (sample) => {
      const pair = await Promise.all([send(left, sample), send(right, sample, { version: 1 })]);
      assert.equal(paid.proxy.callsOf('verify', sample.payment.nonce).length, 2);
      const served = pair.filter(({ status, body }) => status === 200 && !body.idempotentReplay);
      assert.equal(served.length, 1);
      for (const [n, answer] of pair.entries()) {
        if (answer.status === 409) assertSaid(answer, 409, 'idempotency_in_progress');
        else {
          const replay = answer.body.idempotentReplay;
          assertDelivered(answer, sample, { version: n === 0 ? 2 : 1, replay });
        }
      }
    });
    paid.proxy.rule(() => 'pass');
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('without a key: paid at one, shown to the other: a replay', async () => {
    const samples = await paid.samples(left, 'other');
    await each(samples, async (sample, n) => {
      const [here, there] = n % 2 === 0 ? [left, right] : [right, left];
      const { job } = assertDelivered(await sendPatiently(here, sample), sample);
      for (const version of [2, 1] as const) {
        const again = await send(there, sample, { version });
        assert.deepEqual(assertDelivered(again, sample, { replay: true, version }).job, job);
      }
      assertSaid(
        await send(there, sample, { request: { ...sample.request, body: 2 } }),
        409,
        'payment_reused',
      );
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  for (const [title, fault] of [
    ['20 copies at once over both', 'pass'],
    ['20 retries at once over both, of a payment whose settlement is unknown', 'cut'],
  ] as const) {
    test(`${title}: one call, charged once`, async () => {
      const samples = await paid.samples(left, `both-${fault}`);
      if (fault === 'cut') await paid.leaveUnknown(samples, fault, (sample) => sendPatiently(left, sample));
      for (const sample of samples) {
        await assertOneCall([left, right], sample);
        const moves = paid.proxy.callsOf('settle', sample.payment.nonce).filter(({ moved }) => moved);
        assert.equal(moves.length, 1);
      }
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
    });
  }

  test('one of two reconcilers is killed in the middle of its round: no block is compared twice, and none is left out', async () => {
    const own = await startNodeFront(paid.chain.url);
    const compare = { DATABASE_URL: databaseUrl, X402_RECONCILE_SECONDS: '1', X402_CONFIRMATIONS: '0' };
    const dying = await paid.start({ ...compare, X402_RPC_URL: own.url });
    const living = await paid.start(compare);
    const rounds = async () =>
      (await paid.log.recorded()).filter(({ type }) => type === 'ChainReconciled').map(({ data }) => data);
    const reached = async () => Number((await rounds()).at(-1)?.toBlock ?? -1);
    /** Calls on both, which are compared with the chain afterwards. */
    const comparedCalls = async (row: string, services: readonly Service[]) => {
      const samples = await paid.samples(living, row);
      await each(samples, async (sample, n) => {
        const service = services[n % services.length] ?? living;
        assertDelivered(await sendPatiently(service, sample), sample);
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
      const head = await blockNumber(paid.chain.url);
      await waitFor('all blocks are compared', async () => (await reached()) >= head);
    };
    await comparedCalls('compared', [dying, living]);
    own.rule(({ method }) => (method === 'eth_getLogs' ? 'hang' : 'pass'));
    // The others do not get ahead of it.
    paid.node.rule(({ method }) => (method === 'eth_getLogs' ? 'cut' : 'pass'));
    const asked = own.calls.length;
    await waitFor('it is in its round', async () => {
      await paid.chain.mine();
      return own.calls.slice(asked).some(({ method }) => method === 'eth_getLogs');
    });
    paid.node.rule(() => 'pass');
    await comparedCalls('while-one-hangs', [dying, living]);
    await dying.kill();
    await comparedCalls('after-the-kill', [living]);
    const again = await paid.start(compare);
    await comparedCalls('after-the-start', [again, living]);
    const found = await rounds();
    assert.ok(found.length >= 4);
    for (const [n, round] of found.slice(1).entries())
      assert.equal(round.fromBlock, Number(found[n]?.toBlock) + 1, JSON.stringify(found));
    const env = { ...(paid.env as Record<string, string>), ...compare };
    const { stdout } = await runCli(['payments', '--balance', '--json'], { env });
    const [sums] = JSON.parse(stdout);
    assert.deepEqual([sums.balanced, sums.missing, sums.unattributed], [true, '0', '0']);
    assert.equal(BigInt(sums.received), await paid.chain.balanceOf(paid.payTo));
    const audit = await runCli(['audit', '--rpc', paid.chain.url], { env });
    assert.equal(audit.code, 0, audit.stdout);
    for (const service of [living, again]) assert.equal((await service.stop()).code, 0);
    await own.down();
  });

  test('one died in settle: the other takes over after its watch: one call, charged once', async () => {
    await each(orphans, async (sample) => {
      const sent = await waitFor(
        'the payment is taken over',
        async () => {
          const answer = await send(survivor, sample);
          if (answer.status === 200) return answer;
          // On a slow machine the taken over settlement is not confirmed before the answer is due.
          if (answer.status === 503) assertSaid(answer, 503, 'payment_unconfirmed');
          else assertSaid(answer, 409, 'idempotency_in_progress');
          return undefined;
        },
        { limitMs: 90_000, everyMs: 2500 },
      );
      const watched = performance.now() - died;
      assert.ok(watched >= SETTLEMENT_WATCH_MS, `taken over after ${watched} ms`);
      assertDelivered(sent, sample);
      const moves = mourning.proxy.callsOf('settle', sample.payment.nonce).filter(({ moved }) => moved);
      assert.equal(moves.length, 1);
    });
    await mourning.assertBooks(orphans, { calls: 1, charges: 1 });
  });
});

async function blockNumber(url: string): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] });
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return Number(((await answer.json()) as { readonly result: string }).result);
}
