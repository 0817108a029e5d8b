// The payee's own balance is the second witness of a round: blocks count only if it has changed by what the transfers say.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { reconcileOnce } from '#src/usecases/reconciliation/reconcile-chain.ts';
import { ACCOUNT, transactionOf } from '#test/support/chain/fakes-chain.ts';
import { at, paymentRejected } from '#test/support/given/given-events.ts';
import { made, NEVER, reconciledWorld } from '#test/support/world/reconciled-world.ts';

const STRANGER = `0x${'4'.repeat(40)}`;

/** A round was made, and then a payment of this state is on the chain, in a block that the node shows without it. */
async function forgotten(state: 'unknown' | 'served' = 'unknown') {
  const it = reconciledWorld();
  await made(it.round());
  const sample = await it.payment('1', state);
  it.chain.pay(sample.reserved);
  it.chain.node.omits.add(transactionOf(sample.reserved));
  it.pass(60);
  return { ...it, sample };
}

async function differs(round: ReturnType<ReturnType<typeof reconciledWorld>['round']>) {
  const result = await round;
  assert.ok(result.kind === 'differs', result.kind);
  return result;
}

for (const state of ['unknown', 'served'] as const)
  test(`a node that forgets the transfer of a payment that is ${state}: no block counts, nothing is concluded, and the sum is named`, async () => {
    const it = await forgotten(state);
    const before = await it.types(it.sample);
    const { difference } = await differs(it.round());
    assert.equal(difference.units, 3000n);
    assert.equal((await it.compared())?.toBlock, difference.fromBlock - 1);
    assert.deepEqual(await it.types(it.sample), before);
    it.chain.node.omits.clear();
    const { round } = await made(it.round());
    assert.deepEqual([round.fromBlock, round.received], [difference.fromBlock, '3000']);
  });

test('the transfers that the node does show are recorded meanwhile', async () => {
  const it = await forgotten();
  const shown = await it.payment('2', 'unknown');
  it.chain.pay(shown.reserved);
  it.pass(10);
  const { difference, found } = await differs(it.round());
  assert.deepEqual([difference.units, found.settled], [3000n, [shown.stream]]);
  it.chain.node.omits.clear();
  assert.equal((await made(it.round())).round.received, '6000');
});

test('an answer that is wrong for these blocks only, as of a cache: the blocks are read from another start, and count', async () => {
  const it = await forgotten();
  const next = ((await it.compared())?.toBlock ?? 0) + 1;
  it.chain.node.omitsFrom = next;
  const { round } = await made(it.round());
  assert.deepEqual([round.fromBlock, round.received, round.transfers], [next, '3000', 1]);
  assert.ok(it.chain.node.scans.length >= 2);
});

test('each look at blocks that differ reads them from other starts', async () => {
  const it = await forgotten();
  for (let i = 0; i < 3; i++) await differs(it.round());
  const [, ...starts] = it.chain.node.scans.map(({ from }) => from);
  assert.ok(new Set(starts).size >= 5, String(starts));
});

test('what the payee sends is no difference', async () => {
  const it = reconciledWorld();
  await made(it.round());
  it.chain.transfer(STRANGER, 500n);
  it.pass(10);
  it.chain.transfer(ACCOUNT.payee, 200n, STRANGER);
  it.pass(60);
  assert.equal((await made(it.round())).round.received, '500');
});

test('a balance without any transfer, as of a token that mints silently: it differs until an operator has explained it', async () => {
  const it = reconciledWorld();
  await made(it.round());
  it.pass(60);
  it.chain.node.hidden = 7n;
  assert.equal((await differs(it.round())).difference.units, 7n);
  assert.equal((await differs(it.round())).difference.units, 7n);
});

describe('a node that keeps no state that old', () => {
  test('is named once, and rounds count by the logs and their block alone', async () => {
    const it = await forgotten('served');
    it.chain.node.keepsNoState = true;
    await made(it.round());
    it.pass(60);
    await made(it.round());
    const lines = it.logger.lines.filter(({ message }) => message.includes('keeps no state'));
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['warn'],
    );
  });

  test('but for its newest blocks: the balance that was read with the last round is compared', async () => {
    const it = await forgotten();
    it.chain.node.keepsStateOf = 5;
    assert.equal((await differs(it.round())).difference.units, 3000n);
    const another = it.restart();
    assert.equal((await another.round()).kind, 'reconciled', 'a new process has not read it');
  });
});

test('the command: what differs is returned, and ends it', async () => {
  const it = await forgotten();
  const options = { account: ACCOUNT, from: null, signal: NEVER, onRound: () => undefined };
  const { difference, rounds } = await reconcileOnce(it.deps, options);
  assert.deepEqual([difference?.units, rounds.length], [3000n, 0]);
});

describe('a payment that was refused on the facilitator’s word', () => {
  async function refusedAndPaid() {
    const it = reconciledWorld();
    await made(it.round());
    const sample = await it.payment('1', 'reserved');
    const { jobId } = sample;
    await it.append(
      sample.stream,
      paymentRejected({ jobId, reason: 'insufficient_funds', evidence: 'facilitator', rejectedAt: at(5) }),
    );
    return { ...it, sample };
  }

  test('is looked up once more when its authorization is surely over: money that came is charged, and due as a refund', async () => {
    const it = await refusedAndPaid();
    it.chain.pay(it.sample.reserved);
    it.chain.node.omits.add(transactionOf(it.sample.reserved));
    it.chain.node.keepsNoState = true;
    it.pass(100);
    assert.deepEqual((await made(it.round())).found.settled, []);
    it.pass(100);
    const { found } = await made(it.round());
    assert.deepEqual(found.settled, [it.sample.stream]);
    assert.deepEqual(await it.states(), { 1: 'unserved' });
  });

  test('which moved nothing is looked up once, not in each round', async () => {
    const it = await refusedAndPaid();
    it.pass(300);
    const asked: string[] = [];
    const { lookUp } = it.deps;
    Object.assign(it.deps, {
      lookUp(...args: Parameters<typeof lookUp>) {
        asked.push(args[0].nonce);
        return lookUp(...args);
      },
    });
    await made(it.round());
    it.pass(60);
    await made(it.round());
    assert.deepEqual(asked, [it.sample.reserved.nonce]);
    assert.deepEqual(await it.types(it.sample), ['PaymentReserved', 'PaymentRejected']);
  });
});
