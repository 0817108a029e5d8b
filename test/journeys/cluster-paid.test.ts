// Paid calls over EventStoreDB and PostgreSQL: a payment buys one call at any process, and an operator sees
// unconfirmed payments from any machine.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { EXIT } from '#src/cli/exit.ts';
import { runCli } from '#test/support/cli.ts';
import { type Cluster, type Member, makeCluster } from '#test/support/cluster.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { assertDelivered, assertSaid, each, send, sendPatiently } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, SAMPLES, type Sample } from '#test/support/paid-world.ts';
import { needsPostgres } from '#test/support/postgres.ts';

const anvil = needsAnvil();
const postgres = needsPostgres();
const needs = { skip: anvil.skip || postgres.skip };

type Row = { readonly id: string; readonly state: string; readonly payer: string; readonly jobId: string };

describe('paid, by three processes over EventStoreDB', needs, () => {
  let cluster: Cluster;
  let paid: PaidWorld;
  let members: readonly [Member, Member, Member];

  async function payments(...options: readonly string[]): Promise<readonly Row[]> {
    const { code, stdout, stderr } = await runCli(['payments', ...options, '--json'], {
      // anvil's safe block is 32 blocks before its last.
      env: { ...cluster.env, X402_CONFIRMATIONS: '0' },
    });
    assert.ok(code === EXIT.good || code === EXIT.open, stderr);
    assert.equal(stderr, '');
    return JSON.parse(stdout);
  }

  before(async () => {
    paid = await makePaidWorld();
    cluster = await makeCluster('eventstoredb+postgres', { world: paid });
    members = await Promise.all([cluster.start(), cluster.start(), cluster.start()]);
  });
  after(async () => {
    if (cluster === undefined) await paid.end();
    else await cluster.end();
  });

  test('an unconfirmed settlement: relay payments lists it; sent to another process it buys its one call', async () => {
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
  });

  test('resolved, and returned, by an operator on another machine: every process uses what is recorded', async () => {
    const samples = await paid.samples(members[0], 'resolved', { count: 2 });
    const [served, returned] = samples;
    assert.ok(served !== undefined && returned !== undefined);
    // The money moves; the answer that names its transaction is lost.
    await paid.leaveUnknown(samples, 'cut', (sample) => sendPatiently(members[0], sample));
    const rows = await payments('--unknown');
    const idOf = ({ payer }: Sample) =>
      rows.find((row) => row.payer === payer.address.toLowerCase())?.id ?? '';
    for (const { id } of rows) await payments('resolve', id);
    assert.deepEqual(
      (await payments('--unserved')).map(({ id }) => id).sort(),
      [idOf(served), idOf(returned)].sort(),
    );
    assertDelivered(await sendPatiently(members[2], served), served);
    await payments('refund', 'begin', idOf(returned));
    for (const member of members) assertSaid(await send(member, returned), 409, 'payment_reused');
    const transaction = await paid.refund([{ to: returned.payer.address, amount: 3000n }]);
    const both = await Promise.all([1, 2].map(() => payments('refund', 'complete', '--tx', transaction)));
    assert.equal(both.length, 2);
    await paid.assertBooks([served], { calls: 1, charges: 1 });
    await paid.assertBooks([returned], { calls: 0, charges: 0 });
    assert.deepEqual(await payments(), []);
  });
});
