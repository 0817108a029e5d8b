import { rpcChain } from '#src/adapters/payments/chain.ts';
import { chainScan } from '#src/adapters/payments/chain-scan.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { type ContractChain, chainContract } from '#test/support/contract/chain.contract.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';
import { BLOCK_SECONDS, MemoryChain, nodeOf } from './memory-chain.ts';
import { startChainNode } from './scripted-node.ts';

const ASSET = { network: 'eip155:8453', asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' };
const PRESENT = { skip: false };

function opened() {
  let [blocks, accounts] = [0, 0];
  const chain = new MemoryChain({ startMs: 1_767_323_045_000, now: () => blocks * BLOCK_SECONDS * 1000 });
  const isMined = (transaction: ReturnType<MemoryChain['submit']>) => {
    blocks++;
    chain.mine();
    return transaction.block !== null;
  };
  const actions: Omit<ContractChain, 'scan' | 'lookUp' | 'end'> = {
    async account(coins) {
      const address = `0x${(++accounts).toString(16).padStart(40, '0')}`;
      chain.purses.set(address, coins);
      return address;
    },
    async use(transfer) {
      const transaction = chain.pay(transfer, 0);
      return isMined(transaction) ? transaction.hash : null;
    },
    cancel: async (payer, nonce) =>
      isMined(chain.submit('cancel', [], { payer, nonce, validBefore: Number.POSITIVE_INFINITY }, 0)),
    time: async () => chain.timeOf(chain.height),
    async advance(seconds) {
      blocks += Math.max(1, Math.ceil(seconds / BLOCK_SECONDS));
    },
    async undone(work) {
      const from = chain.height + 1;
      await work();
      chain.reorganise(from, () => null);
      blocks++;
    },
  };
  return { chain, actions };
}

chainContract('in memory', PRESENT, async () => {
  const { chain, actions } = opened();
  const node = { safeLag: 2, omits: () => () => false, keepsState: () => true };
  return {
    ...actions,
    scan: nodeOf(chain, ASSET, { ...node, ask: async (answer) => answer() }),
    lookUp: async (transfer) => chain.lookUp(transfer),
    end: async () => undefined,
  };
});

chainContract('in memory, behind JSON-RPC', PRESENT, async () => {
  const { chain, actions } = opened();
  const node = await startChainNode(chain);
  const options = { rpcUrl: node.url, logger: collectingLogger(), clock: systemClock(), confirmations: 2 };
  return {
    ...actions,
    scan: chainScan({ ...options, ...ASSET }),
    lookUp: rpcChain(options).lookUp,
    end: node.down,
  };
});
