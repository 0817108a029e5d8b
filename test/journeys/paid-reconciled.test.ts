// The books compared with a real chain by the real service: a client that never returns, a facilitator that invents a
// settlement, a settlement that is reorganised away, a transfer without a payment.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { rpc } from '#test/support/chain/node-front.ts';
import { mintFor } from '#test/support/chain/refund-batch.ts';
import { readFigures } from '#test/support/given/figures.ts';
import { runCli } from '#test/support/process/cli.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { assertDelivered, assertSaid, each, send, sendPatiently } from '#test/support/world/paid-call.ts';
import { countRows } from '#test/support/world/paid-cell.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';

const needs = needsAnvil();

type Row = { readonly state: string; readonly payer: string; readonly id: string };
type Balance = Readonly<Record<string, string>> & {
  readonly balanced: boolean;
  readonly upToBlock: number | null;
};

describe('the books compared with the chain', needs, () => {
  let paid: PaidWorld;
  let service: Service;
  let env: Record<string, string>;
  before(async () => {
    paid = await makePaidWorld();
    const reconciling = { X402_RECONCILE_SECONDS: '1', X402_CONFIRMATIONS: '1' };
    service = await paid.start(reconciling);
    env = { ...(paid.env as Record<string, string>), ...reconciling };
  });
  after(() => paid.end());

  const payments = async (...args: string[]) => {
    const { stdout, stderr, code } = await runCli(['payments', ...args, '--json'], { env });
    assert.ok(code === 0 || code === 3, stderr);
    return JSON.parse(stdout);
  };
  const stateOf = (rows: readonly Row[], { payer }: Sample) =>
    rows.find((row) => row.payer === payer.address.toLowerCase())?.state ?? null;
  const balance = async (): Promise<Balance> => {
    const rows = await payments('--balance');
    assert.equal(rows.length, 1);
    return rows[0];
  };
  const figures = async () => readFigures(await (await fetch(`${service.url}/metrics`)).text());
  /** One block more than what counts. */
  const bury = async () => {
    await paid.chain.mine();
    await paid.chain.mine();
  };
  /** By the chain's clock a charge of now is due. The chain's clock then stays ahead of ours. */
  const makeDue = async () => {
    await paid.chain.advance(31);
    await paid.chain.mine();
  };
  /** The chain grows meanwhile: what the rows lacked when a block was compared is judged by the next one. */
  const waitForState = (state: string, samples: readonly Sample[]) =>
    waitFor(`payments are ${state}`, async () => {
      await paid.chain.mine();
      const rows: Row[] = await payments();
      return samples.every((sample) => stateOf(rows, sample) === state);
    });
  const open = async (state: string) => (await figures()).of('relay_payments_open', { state });

  test('settled, answer lost, the client never returns: refundable and in the balance; its repeat is served all the same', async () => {
    const samples = await paid.samples(service, 'never-returns');
    paid.proxy.rule(({ kind }) => (kind === 'settle' ? 'cut' : 'pass'));
    paid.node.blind(true);
    await each(samples, async (sample) =>
      assertSaid(await sendPatiently(service, sample), 503, 'payment_unconfirmed'),
    );
    paid.node.blind(false);
    paid.proxy.rule(() => 'pass');
    await bury();
    await waitForState('unserved', samples);
    const units = String(3000 * samples.length);
    const sums = await waitFor('the balance has them', async () => {
      const row = await balance();
      return row.received === units && row;
    });
    assert.deepEqual([sums.charged, sums.open, sums.missing, sums.balanced], [units, units, '0', true]);
    await waitFor('the figures show them', async () => (await open('unserved')) === samples.length);
    const seen = await figures();
    assert.ok((seen.of('relay_payments_open_oldest_seconds', { state: 'unserved' }) ?? 0) > 0);
    assert.equal(seen.of('relay_payments_balanced'), 1);
    assert.equal(seen.of('relay_part_up', { part: 'chain' }), 1);
    assert.ok((seen.of('relay_chain_reconciled_timestamp_seconds') ?? 0) > Date.now() / 1000 - 600);
    await each(samples, async (sample) => {
      assertDelivered(await send(service, sample), sample);
      assert.equal(paid.proxy.callsOf('settle', sample.payment.nonce).length, 1);
    });
    await paid.assertBooks(samples, { calls: 1, charges: 1 });
  });

  test('a facilitator that invents settlements: missing, in the balance and in the audit', async () => {
    const samples = await paid.samples(service, 'invented');
    paid.proxy.rule(({ kind }) => (kind === 'settle' ? 'invented' : 'pass'));
    await each(samples, async (sample) => {
      assertDelivered(await sendPatiently(service, sample), sample);
    });
    paid.proxy.rule(() => 'pass');
    await makeDue();
    await waitForState('missing', samples);
    const { charged, served, missing, received, unattributed, balanced } = await balance();
    assert.equal(missing, String(3000 * samples.length));
    assert.equal(
      BigInt(received ?? ''),
      BigInt(charged ?? '') - BigInt(missing) + BigInt(unattributed ?? ''),
    );
    assert.deepEqual([served, balanced], [charged, true]);
    await waitFor('the figures show them', async () => (await open('missing')) === samples.length);
    const { stdout } = await runCli(['audit'], { env });
    assert.match(stdout, new RegExp(`charged, and that the chain does not have: ${samples.length}`));
    // What they bought is replayed, and nothing more.
    await each(samples, async (sample) =>
      assertDelivered(await send(service, sample), sample, { replay: true }),
    );
    assert.equal(await paid.chain.balanceOf(paid.payTo), BigInt(received ?? ''));
    countRows(samples.map(({ path }) => path));
  });

  test('a settlement that is reorganised away after it was compared: missing within two rounds', async () => {
    const before = await balance();
    const snapshot = await rpc(paid.chain.url, 'evm_snapshot');
    const samples = await paid.samples(service, 'reorganised');
    await each(samples, async (sample) => {
      assertDelivered(await sendPatiently(service, sample), sample);
    });
    await bury();
    const units = BigInt(3000 * samples.length);
    await waitFor(
      'they are compared',
      async () => BigInt((await balance()).received ?? '') === BigInt(before.received ?? '') + units,
    );
    const reached = (await balance()).upToBlock ?? 0;
    assert.equal(await rpc(paid.chain.url, 'evm_revert', snapshot), true);
    // The other chain is longer.
    while (Number(await rpc(paid.chain.url, 'eth_blockNumber')) < reached + 3) await paid.chain.advance(31);
    await waitForState('missing', samples);
    const { received, missing, unattributed, charged, balanced } = await waitFor('the balance', async () => {
      const row = await balance();
      return row.received === before.received && row;
    });
    assert.equal(BigInt(missing ?? ''), BigInt(before.missing ?? '') + units);
    assert.equal(
      BigInt(received ?? ''),
      BigInt(charged ?? '') - BigInt(missing ?? '') + BigInt(unattributed ?? ''),
    );
    assert.equal(balanced, true);
    assert.equal(await paid.chain.balanceOf(paid.payTo), BigInt(received ?? ''));
    const { stdout, code } = await runCli(['audit'], { env });
    assert.equal(code, 0, stdout);
    countRows(samples.map(({ path }) => path));
  });

  test('a transfer without a payment is unattributed, and listed by reconcile', async () => {
    const before = await balance();
    await service.stop();
    const transaction = await mintFor(paid.chain, paid.payTo, 7n);
    await bury();
    const { code, stdout, stderr } = await runCli(['payments', 'reconcile', '--json'], { env });
    assert.equal(code, 3, stderr);
    const result = JSON.parse(stdout);
    assert.deepEqual(
      result.unattributed.map((row: Record<string, unknown>) => [row.transaction, row.amount]),
      [[transaction, '7']],
    );
    const again = await runCli(['payments', 'reconcile', '--from', '1'], { env });
    assert.equal(again.code, 3, again.stderr);
    assert.match(again.stdout, new RegExp(`unattributed[\\s\\S]*7 .*${transaction}`));
    const { received, unattributed, balanced } = await balance();
    assert.equal(BigInt(received ?? ''), BigInt(before.received ?? '') + 7n);
    assert.deepEqual([unattributed, balanced], ['7', true]);
    assert.equal(await paid.chain.balanceOf(paid.payTo), BigInt(received ?? ''));
    const listed: (Row & { readonly transaction: string; readonly amount: string })[] =
      await payments('--missing');
    const stranger = listed.find(({ state }) => state === 'unattributed');
    assert.deepEqual([stranger?.transaction, stranger?.amount], [transaction, '7']);
    // Those of the facilitator that invented settlements, and of the reorganisation.
    const missing = listed.flatMap((row) => (row.state === 'missing' ? [row.id] : []));
    const audit = await runCli(['audit', '--rpc', paid.chain.url, '--json'], { env });
    assert.equal(audit.code, missing.length > 0 ? 1 : 0, audit.stdout);
    const printed = audit.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { chain } = printed.pop().summary;
    assert.deepEqual(
      printed.map(({ finding }) => `${finding.kind} ${finding.stream}`).sort(),
      missing.map((id) => `charge_not_on_chain ${id}`).sort(),
    );
    assert.deepEqual([chain.network, chain.refunds], ['eip155:8453', 0]);
    const alone = await runCli(['audit'], { env });
    assert.match(alone.stdout, /the operator's statement; --rpc checks them/);
    service = await paid.start({ X402_RECONCILE_SECONDS: '1', X402_CONFIRMATIONS: '1' });
  });
});
