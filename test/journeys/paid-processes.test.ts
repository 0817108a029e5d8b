// Two processes over one log and one PostgreSQL: a payment buys one call at either process, also if one of them
// dies.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import {
  assertDelivered,
  assertOneCall,
  assertSaid,
  each,
  send,
  sendPatiently,
} from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';

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

  before(async () => {
    server = await postgresServer();
    paid = await makePaidWorld({ processes: 1 });
    mourning = await makePaidWorld({ processes: 1 });
    const DATABASE_URL = await server.newDatabase();
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
