// Paid calls over EventStoreDB and PostgreSQL: a payment buys one call at any process, and an operator sees
// unconfirmed payments from any machine.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runCli } from '#test/support/cli.ts';
import { type Cluster, type Member, makeCluster } from '#test/support/cluster.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { assertDelivered, assertOneCall, each, send, sendPatiently } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, SAMPLES } from '#test/support/paid-world.ts';
import { needsPostgres } from '#test/support/postgres.ts';

const anvil = needsAnvil();
const postgres = needsPostgres();
const needs = { skip: anvil.skip || postgres.skip };

type Row = { readonly id: string; readonly state: string; readonly payer: string; readonly jobId: string };

describe('paid, by three processes over EventStoreDB', () => {
  let cluster: Cluster;
  let paid: PaidWorld;
  let members: readonly [Member, Member, Member];

  async function payments(...options: readonly string[]): Promise<readonly Row[]> {
    const { code, stdout, stderr } = await runCli(['payments', ...options, '--json'], { env: cluster.env });
    assert.deepEqual([code, stderr], [0, '']);
    return JSON.parse(stdout);
  }

  before(async () => {
    if (needs.skip) return;
    paid = await makePaidWorld();
    cluster = await makeCluster('eventstoredb+postgres', { world: paid });
    members = await Promise.all([cluster.start(), cluster.start(), cluster.start()]);
  });
  after(async () => {
    if (cluster === undefined) await paid?.end();
    else await cluster.end();
  });

  test(
    '20 copies of a payment at once over all processes: one call, charged once; another copy is a replay',
    needs,
    async () => {
      const samples = await paid.samples(members[0], 'copies', { count: SAMPLES });
      for (const sample of samples) await assertOneCall(members, sample);
      await each(samples, async (sample, n) => {
        const again = await send(members[n % 2 === 0 ? 1 : 2], sample);
        assertDelivered(again, sample, { replay: true });
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
      assert.deepEqual(await payments(), []);
    },
  );

  test(
    'an unconfirmed settlement: relay payments lists it; sent to another process it buys its one call',
    needs,
    async () => {
      const samples = await paid.samples(members[0], 'unknown', { count: SAMPLES });
      // The money moves; the answer that names its transaction is lost.
      await paid.leaveUnknown(samples, 'cut', (sample) => sendPatiently(members[0], sample));
      const listed = await payments('--unknown');
      const addresses = samples.map(({ payer }) => payer.address.toLowerCase());
      assert.deepEqual(listed.map(({ payer }) => payer.toLowerCase()).sort(), addresses.sort());
      assert.deepEqual(new Set(listed.map(({ state }) => state)), new Set(['unknown']));
      await each(samples, async (sample) => {
        const { job } = assertDelivered(await sendPatiently(members[1], sample), sample);
        assert.ok(listed.some(({ jobId }) => jobId === job.id));
        assertDelivered(await send(members[2], sample), sample, { replay: true });
      });
      await paid.assertBooks(samples, { calls: 1, charges: 1 });
      assert.deepEqual(await payments(), []);
    },
  );

  test('resolved by an operator on another machine: every process uses the verdict', needs, async () => {
    const [sample] = await paid.samples(members[0], 'resolved', { count: 1 });
    assert.ok(sample);
    // The money moves; the answer that names its transaction is lost.
    await paid.leaveUnknown([sample], 'cut', () => sendPatiently(members[0], sample));
    const [row] = await payments('--unknown');
    const resolved = await runCli(['payments', 'resolve', row?.id ?? ''], { env: cluster.env });
    assert.deepEqual([resolved.code, resolved.stderr], [0, '']);
    assert.deepEqual(
      (await payments('--unserved')).map(({ id }) => id),
      [row?.id],
    );
    assertDelivered(await sendPatiently(members[2], sample), sample);
    await paid.assertBooks([sample], { calls: 1, charges: 1 });
    assert.deepEqual(await payments(), []);
  });
});
