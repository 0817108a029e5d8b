// One round: what the chain has, given what the books say.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ACCOUNT, transactionOf } from '#test/support/chain/fakes-chain.ts';
import { FIRST_BLOCK } from '#test/support/chain/memory-chain.ts';
import { at, paymentRejected, paymentReleased, paymentSettled } from '#test/support/given/given-events.ts';
import { made, reconciledWorld } from '#test/support/world/reconciled-world.ts';

const STRANGER = '0x4444444444444444444444444444444444444444';

describe('a transfer of an authorization', () => {
  test('whose payment is unknown: settled, by the chain, for its own job', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'unknown');
    it.chain.pay(payment.reserved);
    it.pass(10);
    const { round, found } = await made(it.round());
    assert.deepEqual(await it.types(payment), ['PaymentReserved', 'SettlementUnknown', 'PaymentSettled']);
    const settled = (await it.log.readStream(payment.stream)).at(-1)?.data;
    assert.equal(settled?.evidence, 'chain');
    assert.equal(settled?.jobId, payment.jobId);
    assert.deepEqual(found.settled, [payment.stream]);
    assert.deepEqual(
      [round.received, round.transfers, round.settledFound, round.confirmed, round.unattributed],
      ['3000', 1, 1, [payment.stream.slice('payment-'.length)], []],
    );
    assert.deepEqual(await it.states(), { 1: 'unserved' });
  });

  for (const [title, events] of [
    ['reserved, and its process ended', []],
    ['rejected', [paymentRejected({ jobId: 'job_1', rejectedAt: at(5) })]],
    ['released', [paymentReleased({ jobId: 'job_1', releasedAt: at(5) })]],
  ] as const) {
    test(`whose payment is ${title}: settled`, async () => {
      const it = reconciledWorld();
      const payment = await it.payment('1', 'reserved');
      if (events.length > 0) await it.append(payment.stream, ...events);
      it.chain.pay(payment.reserved);
      it.pass(10);
      assert.equal((await made(it.round())).round.settledFound, 1);
      assert.deepEqual(await it.states(), { 1: 'unserved' });
      assert.deepEqual(await it.balance(), {
        charged: '3000',
        served: '0',
        refunded: '0',
        open: '3000',
        missing: '0',
        corrected: '0',
        unattributed: '0',
        received: '3000',
        upToBlock: it.chain.last().number,
        balanced: true,
      });
    });
  }

  test('whose payment is charged: confirmed, and nothing is appended to it', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'served');
    it.chain.pay(payment.reserved);
    it.pass(10);
    const { round } = await made(it.round());
    assert.deepEqual([round.settledFound, round.confirmed.length], [0, 1]);
    assert.deepEqual(await it.types(payment), ['PaymentReserved', 'PaymentSettled']);
  });

  for (const state of ['settled', 'served'] as const)
    test(`whose payment is ${state} with a hash that was invented: the real transaction is recorded, once, and the stated one is kept`, async () => {
      const it = reconciledWorld();
      await made(it.round());
      const payment = await it.payment('1', state);
      const stated = transactionOf(payment.reserved);
      const real = `0x${'c'.repeat(64)}`;
      it.chain.pay(payment.reserved, real);
      it.pass(60);
      const { round, found } = await made(it.round());
      assert.deepEqual([round.corrected, round.confirmed.length, round.missing], [1, 1, 0]);
      assert.deepEqual(found.corrected, [payment.stream]);
      const last = (await it.log.readStream(payment.stream)).at(-1);
      assert.deepEqual(
        [last?.type, last?.data.recorded, last?.data.transaction],
        ['SettlementCorrected', stated, real],
      );
      const [row, ...others] = await it.all();
      assert.deepEqual(others, []);
      assert.deepEqual(
        [row?.state, row?.transaction, row?.statedTransaction],
        [state === 'served' ? 'served' : 'unserved', real, stated],
      );
      const { charged, corrected, missing, received, balanced } = await it.balance();
      assert.deepEqual(
        [charged, corrected, missing, received, balanced],
        ['3000', '3000', '0', '3000', true],
      );
      await made(it.round(round.fromBlock));
      assert.equal((await it.types(payment)).filter((type) => type === 'SettlementCorrected').length, 1);
    });

  test('whose payment is settled without a transaction: it is added, and nothing is corrected', async () => {
    const it = reconciledWorld();
    await made(it.round());
    const payment = await it.payment('1', 'reserved');
    await it.append(payment.stream, paymentSettled({ jobId: payment.jobId, transaction: null }));
    it.chain.pay(payment.reserved);
    it.pass(60);
    const { round, found } = await made(it.round());
    assert.deepEqual([round.corrected, round.confirmed.length, found.corrected], [0, 1, []]);
    const [row] = await it.all();
    assert.deepEqual([row?.transaction, row?.statedTransaction], [transactionOf(payment.reserved), null]);
  });

  test('whose charge was missing with an invented hash: found again with the real transaction, and the stated one is kept', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'served');
    it.pass(60);
    await made(it.round());
    const real = `0x${'c'.repeat(64)}`;
    it.chain.pay(payment.reserved, real);
    it.pass(60);
    await made(it.round());
    const [row] = await it.all();
    assert.deepEqual([row?.transaction, row?.statedTransaction], [real, transactionOf(payment.reserved)]);
    const { corrected, missing, balanced } = await it.balance();
    assert.deepEqual([corrected, missing, balanced], ['3000', '0', true]);
  });

  test('of another amount with the same nonce: it pays for nothing, and the payment is rejected', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'unknown');
    it.chain.pay({ ...payment.reserved, amount: '1' });
    it.pass(10);
    const { round } = await made(it.round());
    assert.deepEqual(
      round.unattributed.map(({ sender, amount }) => [sender, amount]),
      [[payment.reserved.payer, '1']],
    );
    const last = (await it.log.readStream(payment.stream)).at(-1);
    assert.deepEqual([last?.type, last?.data.reason], ['PaymentRejected', 'authorization_spent_elsewhere']);
    const { received, charged, unattributed, balanced } = await it.balance();
    assert.deepEqual([received, charged, unattributed, balanced], ['1', '0', '1', true]);
  });
});

describe('a transfer without a payment', () => {
  test('is unattributed, with its transaction, sender, amount and block', async () => {
    const it = reconciledWorld();
    await made(it.round());
    it.chain.transfer(STRANGER, 7n);
    it.chain.mine();
    const { round } = await made(it.round());
    const [row, ...others] = round.unattributed;
    assert.deepEqual(others, []);
    assert.match(String(row?.transaction), /^0x[0-9a-f]{64}$/);
    assert.deepEqual(
      { ...row, transaction: '' },
      { transaction: '', sender: STRANGER, amount: '7', transfers: 1, block: FIRST_BLOCK + 1 },
    );
    assert.equal(round.received, '7');
    const { received, unattributed, balanced } = await it.balance();
    assert.deepEqual([received, unattributed, balanced], ['7', '7', true]);
  });

  test('a flood of dust in one block: 200 rows and one for the rest, the sum complete', async () => {
    const it = reconciledWorld();
    await made(it.round());
    for (let i = 0; i < 1500; i++) it.chain.transfer(STRANGER, 1n);
    it.chain.mine();
    const { round } = await made(it.round());
    assert.equal(round.unattributed.length, 201);
    assert.deepEqual(round.unattributed.at(-1), {
      transaction: null,
      sender: null,
      amount: '1300',
      transfers: 1300,
      block: FIRST_BLOCK + 1,
    });
    assert.equal((await it.balance()).unattributed, '1500');
  });
});

describe('a reservation of unknown fate', () => {
  test('unused a minute after its end: rejected, which frees its key', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'unknown');
    it.pass(180);
    assert.equal((await made(it.round())).found.rejected.length, 0);
    it.pass(2);
    assert.deepEqual((await made(it.round())).found.rejected, [payment.stream]);
    const last = (await it.log.readStream(payment.stream)).at(-1);
    assert.deepEqual(
      [last?.type, last?.data.reason, last?.data.evidence],
      ['PaymentRejected', 'unused_after_expiry', 'chain'],
    );
    assert.deepEqual(await it.states(), {});
  });

  test('after three about which the node gives no answer: rejected in the next round', async () => {
    const it = reconciledWorld();
    for (const name of ['1', '2', '3']) await it.payment(name);
    const unused = await it.payment('4');
    const { lookUp } = it.chain;
    const asked: typeof lookUp = async (payment) =>
      payment.nonce === unused.reserved.nonce ? lookUp(payment) : { outcome: 'unavailable' };
    Object.assign(it.deps, { lookUp: asked });
    const rejected = [];
    for (let round = 0; round < 3; round++) {
      it.pass(182);
      rejected.push((await made(it.round())).found.rejected);
    }
    assert.deepEqual(rejected, [[], [unused.stream], []]);
  });

  test('cancelled by its payer: rejected at once', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'reserved');
    it.chain.cancel(payment.reserved);
    it.pass(4);
    assert.deepEqual((await made(it.round())).found.rejected, [payment.stream]);
  });

  test('paid in a block that does not count yet: it waits', async () => {
    const it = reconciledWorld();
    it.chain.node.safeLag = 3;
    const payment = await it.payment('1', 'unknown');
    it.chain.mine(5);
    it.chain.pay(payment.reserved);
    it.chain.mine();
    assert.equal((await made(it.round())).round.settledFound, 0);
    assert.deepEqual(await it.types(payment), ['PaymentReserved', 'SettlementUnknown']);
    it.chain.mine(3);
    assert.equal((await made(it.round())).round.settledFound, 1);
  });
});

describe('a charge without a transfer', () => {
  test('is missing within two rounds of a minute; served all the same, and never hidden', async () => {
    const it = reconciledWorld();
    await made(it.round());
    it.pass(50);
    const payment = await it.payment('1', 'served');
    it.pass(10);
    assert.equal((await made(it.round())).round.missing, 0);
    it.pass(60);
    const { round } = await made(it.round());
    assert.equal(round.missing, 1);
    const last = (await it.log.readStream(payment.stream)).at(-1);
    assert.deepEqual(
      [last?.type, last?.data.finding, last?.data.upToBlock],
      ['PaymentMissing', 'unused', round.toBlock],
    );
    assert.deepEqual(await it.states(), { 1: 'missing' });
    const { charged, served, missing, received, balanced } = await it.balance();
    assert.deepEqual([charged, served, missing, received, balanced], ['3000', '3000', '3000', '0', true]);
    it.pass(600);
    await made(it.round());
    assert.deepEqual(await it.states(), { 1: 'missing' });
  });

  test('cancelled in front of its settlement: missing', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'served');
    it.chain.cancel(payment.reserved);
    it.pass(60);
    await made(it.round());
    assert.equal((await it.log.readStream(payment.stream)).at(-1)?.data.finding, 'cancelled');
  });

  test('whose transfer is in a block that does not count yet: not missing', async () => {
    const it = reconciledWorld();
    it.chain.node.safeLag = 2;
    await it.payment('1', 'served');
    it.pass(60);
    const late = await it.payment('2', 'served');
    it.chain.pay(late.reserved);
    it.pass(2);
    assert.equal((await made(it.round())).round.missing, 1);
    assert.deepEqual(await it.states(), { 1: 'missing' });
    assert.equal((await it.balance()).balanced, true);
  });

  test('of which the node is behind: not missing', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'served');
    it.pass(60);
    const behind = async () => ({ outcome: 'unused', chainTimeSeconds: it.chain.last().time - 20 }) as const;
    Object.assign(it.deps, { lookUp: behind });
    assert.equal((await made(it.round())).round.missing, 0);
    assert.equal((await it.types(payment)).includes('PaymentMissing'), false);
  });

  test('whose call never started and that can never be paid: taken back', async () => {
    const it = reconciledWorld();
    const payment = await it.payment('1', 'settled');
    it.pass(60);
    await made(it.round());
    assert.deepEqual(await it.states(), { 1: 'missing' });
    it.pass(122);
    assert.deepEqual((await made(it.round())).found.rejected, [payment.stream]);
    assert.deepEqual(await it.states(), {});
    const { charged, open, missing, balanced } = await it.balance();
    assert.deepEqual([charged, open, missing, balanced], ['0', '0', '0', true]);
  });
});

test('a payment of the payee to itself, as earlier releases took it: no money came in, so it is in no sum and never looked up', async () => {
  const it = reconciledWorld();
  await made(it.round());
  const own = await it.payment('1', 'served', { payer: ACCOUNT.payee });
  const other = await it.payment('2', 'served');
  it.chain.pay(other.reserved);
  let lookUps = 0;
  const counted: typeof it.chain.lookUp = async () => {
    lookUps++;
    return { outcome: 'paid', transaction: transactionOf(own.reserved) };
  };
  Object.assign(it.deps, { lookUp: counted });
  it.pass(60);
  const { round, found } = await made(it.round());
  assert.deepEqual([round.transfers, round.missing, found.unread, lookUps], [1, 0, null, 0]);
  assert.deepEqual(
    (await it.all()).map(({ state }) => state),
    ['self_paid', 'served'],
  );
  assert.deepEqual(await it.states(), {});
  const { charged, served, open, missing, received, balanced } = await it.balance();
  assert.deepEqual(
    [charged, served, open, missing, received, balanced],
    ['3000', '3000', '0', '0', '3000', true],
  );
});

/** The last block earlier than 15 minutes before 4000 seconds have passed. */
const BEFORE_PAYMENTS = FIRST_BLOCK + (4000 - 900) / 2 - 1;

describe('the first round', () => {
  test('without a payment begins now', async () => {
    const it = reconciledWorld();
    it.chain.transfer(STRANGER, 5n);
    it.pass(100);
    const { round } = await made(it.round());
    assert.deepEqual(
      [round.fromBlock, round.toBlock, round.received],
      [FIRST_BLOCK + 50, FIRST_BLOCK + 50, '0'],
    );
  });

  test('begins before the first payment of the account', async () => {
    const it = reconciledWorld();
    it.pass(4000);
    const payment = await it.payment('1', 'unknown');
    it.chain.pay(payment.reserved);
    it.pass(4000);
    const { round } = await made(it.round());
    assert.equal(round.fromBlock, BEFORE_PAYMENTS);
    assert.equal(round.settledFound, 1);
  });

  test('from a later block on, as an operator asks for it: begins there no later', async () => {
    const it = reconciledWorld();
    it.pass(4000);
    await it.payment('1', 'unknown');
    it.pass(60);
    it.chain.transfer(STRANGER, 5n);
    it.pass(4000);
    const { round } = await made(it.round(it.chain.last().number));
    assert.deepEqual([round.fromBlock, round.received], [BEFORE_PAYMENTS, '5']);
    assert.equal(round.unattributed.length, 1);
  });

  test('of a long chain takes several rounds, without a gap', async () => {
    const it = reconciledWorld();
    it.pass(4000);
    const payment = await it.payment('1', 'unknown');
    it.chain.mine(25_000);
    it.chain.pay(payment.reserved);
    it.chain.mine();
    const first = await made(it.round());
    assert.deepEqual(
      [first.more, first.round.fromBlock, first.round.toBlock, first.round.transfers],
      [true, BEFORE_PAYMENTS, BEFORE_PAYMENTS + 19_999, 0],
    );
    // Its authorization is over, so that the chain is asked about it before its block is compared.
    assert.equal(first.round.settledFound, 1);
    const second = await made(it.round());
    assert.deepEqual(
      [second.more, second.round.fromBlock, second.round.confirmed.length],
      [false, BEFORE_PAYMENTS + 20_000, 1],
    );
    assert.equal((await it.round()).kind, 'up_to_date');
  });

  test('more transfers than one round takes: the blocks are divided', async () => {
    const it = reconciledWorld();
    await made(it.round());
    for (let block = 0; block < 3; block++) {
      for (let i = 0; i < 600; i++) it.chain.transfer(STRANGER, 1n);
      it.chain.mine();
    }
    const first = await made(it.round());
    assert.deepEqual([first.more, first.round.transfers], [true, 1200]);
    const second = await made(it.round());
    assert.deepEqual([second.more, second.round.transfers], [false, 600]);
    assert.equal((await it.compared())?.received, 1800n);
  });
});

test('no new block that counts: nothing is appended', async () => {
  const it = reconciledWorld();
  await made(it.round());
  const { length } = it.log.events;
  for (let i = 0; i < 3; i++) assert.equal((await it.round()).kind, 'up_to_date');
  assert.equal(it.log.events.length, length);
});

test('a node that is behind the last round: nothing is appended, and nothing is taken back', async () => {
  const it = reconciledWorld();
  const payment = await it.payment('1', 'served');
  it.chain.pay(payment.reserved);
  it.pass(60);
  await made(it.round());
  const { length } = it.log.events;
  const { block, safeBlock } = it.chain.scan;
  const reached = it.chain.last().number - 20;
  const behind = {
    ...it.chain.scan,
    block: async (number: number) => (number > reached ? null : block(number)),
    safeBlock: async () => (await block(reached)) ?? safeBlock(),
  };
  Object.assign(it.deps, { scan: behind });
  it.pass(60);
  assert.equal((await it.round()).kind, 'up_to_date');
  assert.equal(it.log.events.length, length);
});
