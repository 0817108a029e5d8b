// Look-ups on a real chain: anvil with our token, whose events are those of USDC.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createWalletClient, type Hex, parseAbi, publicActions, http as rpc } from 'viem';
import { rpcChain } from '#src/adapters/payments/chain.ts';
import { chainScan } from '#src/adapters/payments/chain-scan.ts';
import type { X402 } from '#src/adapters/payments/x402.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { devAccount, TOKEN, viemChain } from '#src/demo/payments/chain.ts';
import { Cancel } from '#src/lib/time.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { type ControlledChain, startControlledChain } from '#test/support/chain/controlled-chain.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { rpc as call, type NodeFront, startNodeFront } from '#test/support/chain/node-front.ts';
import { signCancellation } from '#test/support/chain/payer.ts';
import { chainContract } from '#test/support/contract/chain.contract.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';
import {
  type Authorization,
  DOMAIN,
  lab,
  type Payload,
  payloadOf,
  presented,
  signatureOf,
  UNREACHABLE_URL,
  v2,
  wallet,
} from './lab.ts';

const needs = needsAnvil();
const OTHER = '0x2222222222222222222222222222222222222222';
const abi = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);

describe('the look-up of a payment', needs, () => {
  let chain: ControlledChain;
  let x402: X402 & { readonly lines: readonly { fields: unknown; message: string }[] };
  before(async () => {
    chain = await startControlledChain();
    x402 = await lab({ x402: { rpcUrl: chain.url } });
  });
  after(async () => chain?.stop());

  /** A payment of a wallet with funds; its time window is on the chain's clock. */
  async function paying(changes: Partial<Authorization> = {}) {
    const account = wallet();
    await chain.mint([account.address], 10_000n);
    const now = await chain.time();
    const window = { validAfter: String(now - 600), validBefore: String(now + 120) };
    const payload = await payloadOf(account, { ...window, ...changes });
    return { account, payload, payment: await presented(x402, v2(payload)) };
  }
  const transfer = (payload: Payload) => submit(chain.url, payload);

  test('a known transaction is read first: its receipt is enough', async () => {
    const { payload, payment } = await paying();
    const transaction = await transfer(payload);
    await using front = await frontOf(chain);
    const looked = front.chain.lookUp(payment, { transaction });
    assert.deepEqual(await looked, { outcome: 'paid', transaction });
    assert.deepEqual(methods(front), ['eth_chainId', 'eth_getBlockByNumber', 'eth_getTransactionReceipt']);
  });

  test('a transaction that does not pay this payment proves nothing: the authorization is searched', async () => {
    const [first, second, unpaid] = [await paying(), await paying(), await paying()];
    const [transaction, other] = [await transfer(first.payload), await transfer(second.payload)];
    for (const named of [other, `0x${'0'.repeat(64)}`]) {
      const looked = await x402.payments.lookUp(first.payment, { transaction: named });
      assert.deepEqual(looked, { outcome: 'paid', transaction });
      assert.equal((await x402.payments.lookUp(unpaid.payment, { transaction: named })).outcome, 'unused');
    }
    const moved = payment2999(first.payment);
    assert.deepEqual(await x402.payments.lookUp(moved, { transaction }), { outcome: 'spent_elsewhere' });
  });

  test('a payment of another network or asset than the configured is looked up as it was made', async () => {
    const { payload, payment } = await paying();
    await transfer(payload);
    const elsewhere = { ...payment, network: 'eip155:1' };
    assert.deepEqual(await x402.payments.lookUp(elsewhere), { outcome: 'unavailable' });
    assert.deepEqual(await x402.payments.lookUp({ ...payment, asset: OTHER }), { outcome: 'unavailable' });
  });

  test('a node of another chain is unavailable, and the log says why', async () => {
    await using front = await frontOf(chain);
    front.rule(({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : 'pass'));
    const { payment } = await paying();
    assert.deepEqual(await front.chain.lookUp(payment), { outcome: 'unavailable' });
    assert.deepEqual(front.logger.lines[0]?.fields, { code: 'other_chain', condition: 'no_answer' });
  });

  test('a hanging node is unavailable within ten seconds; no log line contains its address', async () => {
    await using front = await frontOf(chain, '/v2/api-key-secret');
    front.rule(({ method }) => (method === 'eth_call' ? 'hang' : 'pass'));
    const { payment } = await paying();
    assert.deepEqual(await front.chain.lookUp(payment), { outcome: 'unavailable' });
    assert.equal(front.logger.lines.length, 1);
    assert.doesNotMatch(JSON.stringify(front.logger.lines), /api-key|127\.0\.0\.1|0x/);
  });

  for (const method of ['eth_chainId', 'eth_call', 'eth_getLogs', 'eth_getTransactionReceipt']) {
    test(`a caller that gives up ends the look-up and its ${method}`, async () => {
      const { payload, payment } = await paying();
      await transfer(payload);
      await using front = await frontOf(chain);
      const [calls, isAsked] = [new Cancel(), Promise.withResolvers<void>()];
      front.rule((call) => {
        if (call.method !== method) return 'pass';
        isAsked.resolve();
        return 'hang';
      });
      const looked = front.chain.lookUp(payment, { signal: calls });
      await isAsked.promise;
      calls.abort();
      assert.deepEqual(await looked, { outcome: 'unavailable' });
      await front.closed();
      assert.deepEqual([methods(front).filter((one) => one === method), front.logger.lines], [[method], []]);
    });
  }
});

test('a node that is unreachable: unavailable, logged once, without its address', async () => {
  const logger = collectingLogger();
  const chain = rpcChain({ rpcUrl: `${UNREACHABLE_URL}/v2/api-key-secret`, logger });
  const payment = await presented(await lab(), v2(await payloadOf(wallet())));
  for (let i = 0; i < 2; i++) assert.deepEqual(await chain.lookUp(payment), { outcome: 'unavailable' });
  const message = 'The chain gave no usable answer about a payment: its settlement stays open.';
  assert.deepEqual(logger.lines, [
    { level: 'warn', message, fields: { code: 'rpc_failed', condition: 'no_answer' } },
  ]);
});

const payment2999 = (payment: PresentedPayment): PresentedPayment => ({ ...payment, amount: '2999' });

/** Look-ups through a front of the node. */
async function frontOf({ url }: ControlledChain, path = '') {
  const front = await startNodeFront(url);
  const logger = collectingLogger();
  const chain = rpcChain({ rpcUrl: `${front.url}${path}`, logger });
  return { ...front, chain, logger, [Symbol.asyncDispose]: front.down };
}

const methods = ({ calls }: Pick<NodeFront, 'calls'>) => calls.map(({ method }) => method).sort();

async function submit(url: string, { authorization, signature }: Payload): Promise<Hex> {
  const client = createWalletClient({
    account: devAccount(2),
    chain: viemChain(url),
    transport: rpc(url),
    pollingInterval: 50,
  }).extend(publicActions);
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const hash = await client.writeContract({
    address: TOKEN,
    abi,
    functionName: 'transferWithAuthorization',
    args: [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature as Hex],
  });
  const { status } = await client.waitForTransactionReceipt({ hash });
  assert.equal(status, 'success');
  return hash;
}

chainContract('anvil', needs, async () => {
  const chain = await startControlledChain();
  const account = { network: 'eip155:8453', asset: TOKEN.toLowerCase() };
  const options = { rpcUrl: chain.url, logger: collectingLogger(), clock: systemClock(), confirmations: 2 };
  const wallets = new Map<string, ReturnType<typeof wallet>>();
  const walletOf = (address: string) => wallets.get(address) ?? assert.fail(`no wallet of ${address}`);
  const refusedAs =
    <T>(value: T) =>
    (error: unknown): T => {
      if (!/revert|refused/.test(String(error))) throw error;
      return value;
    };
  // The last two blocks are not safe.
  for (let i = 0; i < 2; i++) await chain.advance(2);
  return {
    scan: chainScan({ ...options, ...account }),
    lookUp: rpcChain(options).lookUp,
    async account(coins) {
      const made = wallet();
      const address = made.address.toLowerCase();
      wallets.set(address, made);
      if (coins > 0n) await chain.mint([made.address], coins);
      return address;
    },
    async use({ payer, payTo, amount: value, nonce, validAfter, validBefore }) {
      const from = walletOf(payer);
      const parties = { from: from.address, to: payTo as Hex, nonce: nonce as Hex };
      const authorization = { ...parties, value, validAfter, validBefore };
      const signature = await signatureOf(from, authorization);
      return submit(chain.url, { authorization, signature }).catch(refusedAs(null));
    },
    async cancel(payer, nonce) {
      const { address } = walletOf(payer);
      const signature = await signCancellation(walletOf(payer), nonce as Hex, DOMAIN);
      return chain.cancel(address, nonce as Hex, signature).then(() => true, refusedAs(false));
    },
    time: chain.time,
    advance: chain.advance,
    async undone(work) {
      const snapshot = await call(chain.url, 'evm_snapshot');
      await work();
      await call(chain.url, 'evm_revert', snapshot);
      for (let i = 0; i < 2; i++) await chain.advance(3);
    },
    end: () => chain.stop(),
  };
});
