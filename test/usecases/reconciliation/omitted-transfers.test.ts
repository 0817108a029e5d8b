// A node that leaves a transfer out of its answer, and keeps no state with which this would be noticed at once: the books
// must not stay short.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { reconcileOnce } from '#src/usecases/reconciliation/reconcile-chain.ts';
import { ACCOUNT, transactionOf } from '#test/support/chain/fakes-chain.ts';
import { at, paymentSettled } from '#test/support/given/given-events.ts';
import { made, NEVER, reconciledWorld } from '#test/support/world/reconciled-world.ts';

function withoutState() {
  const it = reconciledWorld();
  it.chain.node.keepsNoState = true;
  return it;
}

test('a node that leaves a transfer out: the charge is not missing, and the block to read again is found', async () => {
  const it = withoutState();
  await made(it.round());
  const payment = await it.payment('1', 'served');
  it.chain.pay(payment.reserved);
  const { number } = it.chain.mine();
  const finding = await it.chain.lookUp(payment.reserved);
  assert.ok(finding.outcome === 'paid' && finding.transaction !== null);
  it.chain.node.omits.add(finding.transaction);
  it.pass(60);
  const { found, round } = await made(it.round());
  assert.deepEqual([found.missing, round.transfers, found.unread], [[], 0, number]);
  assert.equal((await it.balance()).balanced, true);
  it.chain.node.omits.clear();
  const again = await made(it.round(found.unread));
  assert.deepEqual([again.round.transfers, again.found.unread], [1, null]);
  const { received, charged, balanced } = await it.balance();
  assert.deepEqual([received, charged, balanced], ['3000', '3000', true]);
});

test('a transfer that the node left out, of a payment of unknown fate: it is charged, and its block is to be read again', async () => {
  const it = withoutState();
  await made(it.round());
  const payment = await it.payment('1', 'unknown');
  it.chain.pay(payment.reserved);
  const { number } = it.chain.mine();
  it.chain.node.omits.add(transactionOf(payment.reserved));
  it.pass(60);
  const { found, round } = await made(it.round());
  assert.deepEqual([found.settled, round.transfers, found.unread], [[payment.stream], 0, number]);
  it.chain.node.omits.clear();
  const again = await made(it.round(found.unread));
  assert.deepEqual([again.round.transfers, again.found.unread], [1, null]);
  const { received, charged } = await it.balance();
  assert.deepEqual([received, charged], ['3000', '3000']);
});

test('all rounds at once, one of which is repeated for such a transfer: what it contains counts once', async () => {
  const it = withoutState();
  await made(it.round());
  const { reserved } = await it.payment('1', 'served');
  it.chain.pay(reserved);
  it.chain.transfer(`0x${'4'.repeat(40)}`, 5n);
  it.pass(60);
  it.chain.node.omits.add(transactionOf(reserved));
  const received: string[] = [];
  const { rounds } = await reconcileOnce(it.deps, {
    account: ACCOUNT,
    from: null,
    signal: NEVER,
    onRound(round) {
      received.push(round.received);
      it.chain.node.omits.clear();
    },
  });
  assert.deepEqual(received, ['5', '3005']);
  assert.deepEqual(
    rounds.map(({ transfers, unattributed, ...round }) => [round.received, transfers, unattributed.length]),
    [['3005', 2, 1]],
  );
});

describe('a charge whose record has a time far ahead, by a wrong clock', () => {
  const DAY_MS = 86_400_000;

  test('which the node left out: it is looked up when its authorization has surely ended', async () => {
    const it = withoutState();
    await made(it.round());
    const { stream, jobId, reserved } = await it.payment('1', 'unknown');
    it.chain.pay(reserved);
    const { number } = it.chain.mine();
    const transaction = transactionOf(reserved);
    await it.append(stream, paymentSettled({ jobId, transaction, settledAt: at(DAY_MS) }));
    it.chain.node.omits.add(transaction);
    it.pass(160);
    assert.deepEqual((await made(it.round())).found.unread, null);
    it.pass(40);
    const { found } = await made(it.round());
    assert.deepEqual([found.missing, found.unread], [[], number]);
    it.chain.node.omits.clear();
    assert.equal((await made(it.round(found.unread))).round.transfers, 1);
  });

  test('without a transfer: it is missing when its authorization has surely ended', async () => {
    const it = withoutState();
    await made(it.round());
    const { stream, jobId, reserved } = await it.payment('1', 'unknown');
    const transaction = transactionOf(reserved);
    await it.append(stream, paymentSettled({ jobId, transaction, settledAt: at(DAY_MS) }));
    it.pass(160);
    assert.deepEqual((await made(it.round())).found.missing, []);
    it.pass(40);
    assert.deepEqual((await made(it.round())).found.missing, [stream]);
  });
});
