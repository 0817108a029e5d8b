// The contract of a chain with a token whose authorizations are EIP-3009: what becomes of transfers and cancellations, and
// how they are read. For a node, and for the chain in memory in its place.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type ChainScan, ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { Authorization, Payments } from '#src/ports/payments.ts';

/** Unix seconds of the chain. */
export type SignedTransfer = Authorization & { readonly validAfter: string };

export type ContractChain = Pick<Payments, 'lookUp'> & {
  /** Of which the last two blocks are not safe. */
  readonly scan: ChainScan;
  /** A new account with so many coins, lower case. */
  account(coins: bigint): Promise<string>;
  /** Presents it in a block of its own. Resolves to the transaction; null: the token refuses it. */
  use(transfer: SignedTransfer): Promise<string | null>;
  /** Whether the token takes the cancellation. */
  cancel(payer: string, nonce: string): Promise<boolean>;
  time(): Promise<number>;
  /** Moves the chain's clock, and mines a block at least. */
  advance(seconds: number): Promise<void>;
  /** Replaces all blocks that `work` brought by others without its transactions, and one more. */
  undone(work: () => Promise<void>): Promise<void>;
  end(): Promise<void>;
};

export function chainContract(
  name: string,
  needs: { readonly skip: boolean },
  open: () => Promise<ContractChain>,
) {
  describe(`chain, ${name}`, needs, () => {
    let chain: ContractChain;
    let nonces = 0;
    before(async () => {
      chain = await open();
    });
    after(() => chain?.end());

    const found = async (transfer: SignedTransfer) => (await chain.lookUp(transfer)).outcome;
    /** By an account of its own that has 10,000 units. */
    async function signed(changes: Partial<SignedTransfer> = {}): Promise<SignedTransfer> {
      const now = await chain.time();
      return {
        network: chain.scan.network,
        asset: chain.scan.asset,
        payer: changes.payer ?? (await chain.account(10_000n)),
        payTo: await chain.account(0n),
        amount: '3000',
        nonce: `0x${(++nonces).toString(16).padStart(64, '7')}`,
        validAfter: String(now - 600),
        validBefore: String(now + 120),
        ...changes,
      };
    }
    const used = async (transfer: SignedTransfer): Promise<string> =>
      (await chain.use(transfer)) ?? assert.fail('the token refused it');
    const head = async () => (await chain.scan.safeBlock()).number + 2;
    const read = async (payee: string, from: number, payers: string[] = [], maxTransfers = 1000) =>
      chain.scan.scan({ payee, from, to: await head(), maxTransfers, payers });

    test('unused, with the chain’s time: before its expiry and after', async () => {
      const transfer = await signed();
      assert.deepEqual(await chain.lookUp(transfer), {
        outcome: 'unused',
        chainTimeSeconds: await chain.time(),
      });
      await chain.advance(1000);
      const finding = await chain.lookUp(transfer);
      assert.ok(finding.outcome === 'unused' && finding.chainTimeSeconds > Number(transfer.validBefore) + 60);
    });

    test('paid, with its transaction; also long after its expiry', async () => {
      const transfer = await signed();
      const transaction = await used(transfer);
      assert.deepEqual(await chain.lookUp(transfer), { outcome: 'paid', transaction });
      await chain.advance(7 * 86_400);
      assert.deepEqual(await chain.lookUp(transfer), { outcome: 'paid', transaction });
    });

    test('cancelled; also after its expiry', async () => {
      for (const seconds of [0, 3600]) {
        const transfer = await signed();
        await chain.advance(seconds);
        assert.ok(await chain.cancel(transfer.payer, transfer.nonce));
        assert.deepEqual(await chain.lookUp(transfer), { outcome: 'cancelled' });
        await chain.advance(86_400);
        assert.deepEqual(await chain.lookUp(transfer), { outcome: 'cancelled' });
      }
    });

    test('spent elsewhere: the same nonce, another recipient or amount', async () => {
      for (const changes of [{ payTo: await chain.account(0n) }, { amount: '2999' }]) {
        const transfer = await signed();
        await used({ ...transfer, ...changes });
        assert.deepEqual(await chain.lookUp(transfer), { outcome: 'spent_elsewhere' });
      }
    });

    test('neither another payer’s use of the nonce nor another nonce of the payer is this payment', async () => {
      const transfer = await signed();
      await used(await signed({ nonce: transfer.nonce }));
      await used(await signed({ payer: transfer.payer }));
      assert.equal(await found(transfer), 'unused');
      const transaction = await used(transfer);
      assert.deepEqual(await chain.lookUp(transfer), { outcome: 'paid', transaction });
    });

    test('an authorization that has ended is not used again, and is not cancelled', async () => {
      for (const end of [used, ({ payer, nonce }: SignedTransfer) => chain.cancel(payer, nonce)]) {
        const transfer = await signed();
        await end(transfer);
        const before = await chain.lookUp(transfer);
        const [again, isCancelled] = [
          await chain.use(transfer),
          await chain.cancel(transfer.payer, transfer.nonce),
        ];
        assert.deepEqual([again, isCancelled, await chain.lookUp(transfer)], [null, false, before]);
      }
    });

    test('refused, and unused: before its time, after its time, and of more than the payer has', async () => {
      const now = await chain.time();
      const rows: Partial<SignedTransfer>[] = [
        { validAfter: String(now + 100) },
        { validBefore: String(now - 1) },
        { amount: '10001' },
      ];
      for (const changes of rows) {
        const transfer = await signed(changes);
        assert.deepEqual(
          [await chain.use(transfer), await found(transfer)],
          [null, 'unused'],
          JSON.stringify(changes),
        );
      }
      const early = await signed({ validAfter: String((await chain.time()) + 100) });
      await chain.advance(110);
      assert.equal(typeof (await chain.use(early)), 'string');
    });

    test('a scan shows each transfer with its place, its sender and its nonce, and what the payee sent', async () => {
      const first = await signed();
      const { payTo: payee } = first;
      const from = (await head()) + 1;
      const others = [
        await signed({ payTo: payee, amount: '0' }),
        await signed({ payTo: payee, amount: '70' }),
        await signed({ payer: payee, amount: '5' }),
        await signed({ payer: payee, payTo: payee, amount: '5' }),
        await signed(),
      ];
      const transactions: string[] = [];
      for (const transfer of [first, ...others]) transactions.push(await used(transfer));
      const cancelled = await signed();
      await chain.cancel(cancelled.payer, cancelled.nonce);
      const [, , second = first] = [first, ...others];
      const shown = async (transfer: SignedTransfer, n: number) => ({
        transaction: transactions[n],
        block: await chain.scan.blockOf(transactions[n] ?? ''),
        sender: transfer.payer,
        amount: BigInt(transfer.amount),
        nonce: transfer.nonce,
      });
      const all = await read(payee, from, [second.payer, cancelled.payer]);
      assert.deepEqual(all.transfers, [await shown(first, 0), await shown(second, 2)]);
      assert.deepEqual(all.sent, [{ block: await chain.scan.blockOf(transactions[3] ?? ''), amount: 5n }]);
      const ended = [second, cancelled].map(({ payer, nonce }) => ({ payer, nonce }));
      assert.deepEqual(all.ended, ended);
      assert.deepEqual([all.to, all.hash], [await head(), (await chain.scan.block(await head()))?.hash]);
      const short = await read(payee, from, [], 1);
      assert.ok(short.transfers.length > 0);
      assert.deepEqual(
        short.transfers,
        all.transfers.filter(({ block }) => block <= short.to),
        'whole blocks',
      );
    });

    test('the payee has after each block what came by then, less what it sent', async () => {
      const transfer = await signed();
      const { payTo } = transfer;
      const start = await head();
      const atEnd = (await chain.scan.blockOf(await used(transfer))) ?? assert.fail();
      await used(await signed({ payer: payTo, amount: '1' }));
      const balances = await Promise.all(
        [start, atEnd, await head()].map((at) => chain.scan.balanceOf(payTo, at)),
      );
      const [none, came, left] = balances.map((one) =>
        one.kind === 'known' ? one.amount : assert.fail(one.kind),
      );
      assert.deepEqual([(came ?? 0n) - (none ?? 0n), (left ?? 0n) - (none ?? 0n)], [3000n, 2999n]);
    });

    test('blocks: by number, by time, the safe one, and none after the last', async () => {
      await chain.advance(60);
      await chain.advance(60);
      const safe = await chain.scan.safeBlock();
      assert.deepEqual(await chain.scan.block(safe.number), safe);
      const last = (await chain.scan.block(safe.number + 2)) ?? assert.fail();
      assert.equal(last.time, await chain.time());
      assert.equal(await chain.scan.block(last.number + 1), null);
      const later = chain.scan.balanceOf(`0x${'1'.repeat(40)}`, last.number + 1);
      await assert.rejects(
        later,
        (error) => error instanceof ChainUnavailable && error.code === 'rpc_failed',
      );
      assert.equal(await chain.scan.blockBefore(1_000_000_000), 0);
      const before = await chain.scan.blockBefore(last.time);
      assert.ok(before < last.number && ((await chain.scan.block(before))?.time ?? last.time) < last.time);
      assert.equal(await chain.scan.blockOf(`0x${'0'.repeat(64)}`), null);
    });

    test('a reorganisation takes the transaction with its block: the authorization is unused, and may be used', async () => {
      const transfer = await signed();
      const from = await head();
      let gone = '';
      const hashes: (string | undefined)[] = [];
      const hashOf = async (number: number) => (await chain.scan.block(number))?.hash;
      await chain.undone(async () => {
        gone = await used(transfer);
        hashes.push(await hashOf(from), await hashOf(from + 1));
      });
      assert.deepEqual([await found(transfer), await chain.scan.blockOf(gone)], ['unused', null]);
      assert.deepEqual((await read(transfer.payTo, from)).transfers, []);
      assert.deepEqual(
        [(await hashOf(from)) === hashes[0], (await hashOf(from + 1)) === hashes[1]],
        [true, false],
      );
      await used(transfer);
      assert.equal(await found(transfer), 'paid');
    });
  });
}
