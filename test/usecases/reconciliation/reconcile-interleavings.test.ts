// Rounds that meet each other, die in their middle, or find another chain than before.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NO_LEDGER } from '#src/domain/payment/ledger.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { FIRST_BLOCK } from '#test/support/chain/memory-chain.ts';
import { Crash, dies, gate } from '#test/support/log/fakes-log.ts';
import { made, type ReconciledWorld, reconciledWorld } from '#test/support/world/reconciled-world.ts';

const count = (it: ReconciledWorld, type: string) =>
  it.log.events.filter((event) => event.type === type).length;

/** One payment to find, one to miss, and one that is over. */
async function work(it: ReconciledWorld) {
  const found = await it.payment('1', 'unknown');
  const lost = await it.payment('2', 'served');
  const over = await it.payment('3', 'unknown');
  it.chain.pay(found.reserved);
  it.pass(300);
  return { found, lost, over };
}

async function assertDone(it: ReconciledWorld) {
  assert.deepEqual(await it.states(), { 1: 'unserved', 2: 'missing' });
  assert.deepEqual(
    ['PaymentSettled', 'PaymentMissing', 'PaymentRejected'].map((type) => count(it, type)),
    [2, 1, 1],
  );
  const { charged, missing, received, balanced } = await it.balance();
  assert.deepEqual([charged, missing, received, balanced], ['6000', '3000', '3000', true]);
}

describe('two processes', () => {
  test('at once: each fact is recorded once, and one of them makes the round', async () => {
    const it = reconciledWorld();
    await work(it);
    const others = [it.openProcess(), it.openProcess(), it.openProcess()];
    const rounds = await Promise.all([it, ...others].map(({ round }) => round()));
    assert.deepEqual(rounds.map(({ kind }) => kind).sort(), [
      'overtaken',
      'overtaken',
      'overtaken',
      'reconciled',
    ]);
    assert.equal(count(it, 'ChainReconciled'), 1);
    await assertDone(it);
  });

  test('one was frozen between its look at the chain and its record of a missing charge, which the chain got meanwhile', async () => {
    const it = reconciledWorld();
    const { reserved } = await it.payment('1', 'served');
    it.pass(60);
    const slow = it.openProcess();
    const { frozen, reached, open } = gate();
    slow.log.onNext('PaymentMissing', frozen);
    const late = slow.round();
    await reached;
    it.chain.pay(reserved);
    it.pass(2);
    assert.equal((await made(it.round())).round.missing, 0);
    open();
    assert.equal((await late).kind, 'overtaken');
    // Its record is false, and a later round takes it back.
    assert.deepEqual(await it.states(), { 1: 'missing' });
    it.pass(60);
    await made(it.round());
    assert.deepEqual(await it.states(), {});
    it.pass(60);
    const { found } = await made(it.round());
    assert.notEqual(found.unread, null);
    await made(it.round(found.unread));
    const { charged, missing, received, balanced } = await it.balance();
    assert.deepEqual([charged, missing, received, balanced], ['3000', '0', '3000', true]);
  });

  test('one whose candidates are those before the last round: they are confirmed, and it concludes nothing', async () => {
    const it = reconciledWorld();
    const { reserved } = await it.payment('1', 'served');
    it.chain.pay(reserved);
    const before = await it.ledger();
    const stale = { ...before, unconfirmed: new Map(before.unconfirmed) };
    assert.equal(stale.unconfirmed.size, 1);
    it.pass(60);
    await made(it.round());
    it.pass(60);
    const lagging = it.openProcess();
    Object.assign(lagging.deps, { ledger: async () => stale });
    const { round, found } = await made(lagging.round());
    assert.deepEqual([found.unread, found.missing, round.received], [null, [], '0']);
    assert.equal((await it.balance()).balanced, true);
  });

  test('one that knows no candidates: what is due is found by the next one', async () => {
    const it = reconciledWorld();
    await it.payment('1', 'served');
    await it.payment('2', 'unknown');
    it.pass(300);
    const blind = it.openProcess();
    Object.assign(blind.deps, { ledger: async () => NO_LEDGER });
    const { round } = await made(blind.round());
    assert.deepEqual([round.missing, count(it, 'PaymentRejected')], [0, 0]);
    it.pass(60);
    assert.equal((await made(it.round())).round.missing, 1);
    assert.deepEqual(await it.states(), { 1: 'missing' });
  });

  test('one is overtaken before it has recorded a missing charge: it does not record it', async () => {
    const it = reconciledWorld();
    const { reserved } = await it.payment('1', 'served');
    it.pass(60);
    const slow = it.openProcess();
    const lookUp = async (): Promise<ChainFinding> => {
      const finding = await it.chain.lookUp({ ...reserved });
      it.chain.pay(reserved);
      it.pass(2);
      await made(it.round());
      return finding;
    };
    Object.assign(slow.deps, { lookUp });
    assert.equal((await slow.round()).kind, 'overtaken');
    assert.equal(count(it, 'PaymentMissing'), 0);
  });

  test('one is overtaken after it has read a transaction that the chain then drops: it does not record that one', async () => {
    const it = reconciledWorld();
    const { reserved } = await it.payment('1', 'served');
    const [old, real] = [`0x${'c'.repeat(64)}`, `0x${'d'.repeat(64)}`];
    it.chain.pay(reserved, old);
    it.pass(60);
    const slow = it.openProcess();
    const block: typeof it.chain.scan.block = async (number) => {
      const answer = await it.chain.scan.block(number);
      it.chain.reorganise(FIRST_BLOCK + 1);
      it.chain.pay(reserved, real);
      it.pass(60);
      await made(it.round());
      return answer;
    };
    Object.assign(slow.deps, { scan: { ...it.chain.scan, block } });
    assert.equal((await slow.round()).kind, 'overtaken');
    const [row] = await it.all();
    assert.equal(row?.transaction, real);
    assert.equal(count(it, 'SettlementCorrected'), 1);
  });
});

describe('a process that dies', () => {
  for (const type of ['PaymentSettled', 'PaymentMissing', 'PaymentRejected', 'ChainReconciled'])
    for (const when of ['before', 'after'] as const)
      test(`${when} ${type} is stored: the next round ends with the same facts`, async () => {
        const it = reconciledWorld();
        await work(it);
        const dying = it.openProcess();
        dying.log.onNext(type, dies(when));
        await assert.rejects(dying.round(), Crash);
        const result = await it.round();
        assert.equal(
          result.kind,
          type === 'ChainReconciled' && when === 'after' ? 'up_to_date' : 'reconciled',
        );
        await assertDone(it);
        assert.equal(count(it, 'ChainReconciled'), 1);
      });
});

describe('a reorganisation', () => {
  /** Served and confirmed in a compared block; three rounds of ten blocks each before it, and one after. */
  async function confirmed() {
    const it = reconciledWorld();
    for (let i = 0; i < 3; i++) {
      it.pass(20);
      await made(it.round());
    }
    const payment = await it.payment('1', 'served');
    it.chain.pay(payment.reserved);
    const { number } = it.chain.mine();
    it.pass(20);
    await made(it.round());
    it.pass(20);
    await made(it.round());
    assert.equal((await it.balance()).received, '3000');
    return { it, payment, block: number };
  }

  test('that removes a settlement: missing in the next round, in the balance, and found again when it is mined again', async () => {
    const { it, payment, block } = await confirmed();
    it.chain.reorganise(block);
    const { round } = await made(it.round());
    assert.ok(round.fromBlock <= block);
    assert.equal((await it.balance()).balanced, true);
    assert.equal(round.missing, 1);
    assert.deepEqual(await it.states(), { 1: 'missing' });
    const removed = await it.balance();
    assert.deepEqual(
      [removed.charged, removed.missing, removed.received, removed.balanced],
      ['3000', '3000', '0', true],
    );
    it.chain.pay(payment.reserved);
    it.pass(60);
    await made(it.round());
    assert.deepEqual(await it.states(), {});
    const { missing, received, balanced } = await it.balance();
    assert.deepEqual([missing, received, balanced], ['0', '3000', true]);
  });

  test('goes back to the last round whose block is still there, and no further', async () => {
    const { it, block } = await confirmed();
    const before = it.log.events.filter(({ type }) => type === 'ChainReconciled');
    it.chain.reorganise(block + 5);
    const { round } = await made(it.round());
    const standing = before.filter(({ data }) => Number(data.toBlock) < block + 5).at(-1);
    assert.equal(round.fromBlock, Number(standing?.data.toBlock) + 1);
    assert.equal(round.missing, 0);
    assert.equal((await it.balance()).received, '3000');
  });

  test('of the whole chain: from the first block that was compared', async () => {
    const { it } = await confirmed();
    const first = it.log.events.find(({ type }) => type === 'ChainReconciled');
    it.chain.reorganise(FIRST_BLOCK + 1);
    const { round } = await made(it.round());
    assert.equal(round.fromBlock, first?.data.fromBlock);
    const { missing, received, balanced } = await it.balance();
    assert.deepEqual([missing, received, balanced], ['3000', '0', true]);
  });

  test('a process that starts after it has the same books as one that saw it', async () => {
    const { it, block } = await confirmed();
    it.chain.reorganise(block);
    await made(it.round());
    assert.deepEqual(await it.restart().ledger(), await it.ledger());
  });

  for (const isPaid of [true, false])
    test(`while a round ${isPaid ? 'with' : 'without'} a transfer is made: the round counts for nothing`, async () => {
      const it = reconciledWorld();
      await made(it.round());
      const payment = await it.payment('1', 'unknown');
      if (isPaid) it.chain.pay(payment.reserved);
      it.pass(20);
      const other = it.openProcess();
      const scan: typeof it.chain.scan.scan = async (request) => {
        const answer = await it.chain.scan.scan(request);
        it.chain.reorganise(FIRST_BLOCK + 1);
        return answer;
      };
      Object.assign(other.deps, { scan: { ...it.chain.scan, scan } });
      assert.equal((await other.round()).kind, 'overtaken');
      assert.deepEqual(await it.types(payment), ['PaymentReserved', 'SettlementUnknown']);
    });
});
