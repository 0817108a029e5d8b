// The local chain: the rules of the token, and the control of clock and mining.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import {
  createWalletClient,
  type Hex,
  http,
  parseAbi,
  parseEventLogs,
  parseSignature,
  publicActions,
  toHex,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { devAccount, TOKEN, viemChain } from '#src/demo/payments/chain.ts';
import { type ControlledChain, startControlledChain } from '#test/support/chain/controlled-chain.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { runtimeName } from '#test/support/process/runtime.ts';
import { waitFor } from '#test/support/process/service.ts';

const needs = needsAnvil();
const newPayer = () => privateKeyToAccount(generatePrivateKey());

const abi = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function symbol() view returns (string)',
  'function totalSupply() view returns (uint256)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
]);
const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: TOKEN } as const;
const fields = {
  from: 'address',
  to: 'address',
  value: 'uint256',
  validAfter: 'uint256',
  validBefore: 'uint256',
  nonce: 'bytes32',
};
const typed = (types: Readonly<Record<string, string>>) =>
  Object.entries(types).map(([name, type]) => ({ name, type }));
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

describe('the local token', needs, () => {
  let chain: ControlledChain;
  const payer = newPayer();
  const payee = newPayer().address;
  const connect = () =>
    createWalletClient({
      account: devAccount(2),
      chain: viemChain(chain.url),
      transport: http(chain.url),
      pollingInterval: 50,
    }).extend(publicActions);
  let client: ReturnType<typeof connect>;

  before(async () => {
    chain = await startControlledChain();
    client = connect();
    await chain.mint([payer.address], 1_000_000n);
  });
  after(async () => {
    await chain.stop();
  });

  const authorization = async (changes: Partial<{ validAfter: bigint; validBefore: bigint }> = {}) => {
    const validBefore = BigInt(await chain.time()) + 100n;
    const nonce = generatePrivateKey();
    return { from: payer.address, to: payee, value: 3000n, validAfter: 0n, validBefore, nonce, ...changes };
  };
  type Authorization = Awaited<ReturnType<typeof authorization>>;
  const sign = (message: Authorization, by = payer): Promise<Hex> =>
    by.signTypedData({
      domain,
      types: { TransferWithAuthorization: typed(fields) },
      primaryType: 'TransferWithAuthorization',
      message,
    });
  const parts = (signature: Hex) => {
    const { r, s, v } = parseSignature(signature);
    return [Number(v), r, s] as const;
  };
  const move = async (message: Authorization, ...signature: readonly unknown[]) => {
    const { from, to, value, validAfter, validBefore, nonce } = message;
    const args = [from, to, value, validAfter, validBefore, nonce, ...signature];
    const call = { address: TOKEN, abi, functionName: 'transferWithAuthorization', args } as never;
    await client.estimateContractGas(call);
    return client.waitForTransactionReceipt({ hash: await client.writeContract(call) });
  };

  test('has name, version, decimals and symbol of USDC', async () => {
    const read = (functionName: 'name' | 'version' | 'decimals' | 'symbol' | 'totalSupply') =>
      client.readContract({ address: TOKEN, abi, functionName });
    assert.deepEqual(
      [await read('name'), await read('version'), await read('decimals'), await read('symbol')],
      ['USD Coin', '2', 6, 'USDC'],
    );
    assert.equal(await read('totalSupply'), 1_000_000n);
  });

  test('both overloads transfer the amount; AuthorizationUsed is directly before Transfer', async () => {
    for (const overload of ['parts', 'bytes']) {
      const message = await authorization();
      const signature = await sign(message);
      const before = await chain.balanceOf(payee);
      const receipt = await move(message, ...(overload === 'parts' ? parts(signature) : [signature]));
      assert.deepEqual(
        parseEventLogs({ abi, logs: receipt.logs }).map(({ eventName, args }) => ({ eventName, ...args })),
        [
          { eventName: 'AuthorizationUsed', authorizer: payer.address, nonce: message.nonce },
          { eventName: 'Transfer', from: payer.address, to: payee, value: 3000n },
        ],
      );
      assert.equal(await chain.balanceOf(payee), before + 3000n);
      assert.equal(await chain.isSpent(payer.address, message.nonce), true);
      await assert.rejects(move(message, signature), /authorization is used or canceled/);
    }
  });

  test('its window excludes both ends, by the chain’s own clock', async () => {
    const early = await authorization({ validAfter: BigInt(await chain.time()) + 1000n });
    await assert.rejects(move(early, await sign(early)), /authorization is not yet valid/);
    const late = await authorization();
    const signature = await sign(late);
    await chain.advance(101);
    await assert.rejects(move(late, signature), /authorization is expired/);
  });

  test('another signer, another v, the high half of s and a short signature are refused', async () => {
    const message = await authorization();
    const [v, r, s] = parts(await sign(message));
    await assert.rejects(move(message, await sign(message, newPayer())), /invalid signature/);
    await assert.rejects(move(message, v - 27, r, s), /invalid signature 'v' value/);
    const mirrored = toHex(ORDER - BigInt(s), { size: 32 });
    await assert.rejects(move(message, v === 27 ? 28 : 27, r, mirrored), /invalid signature 's' value/);
    await assert.rejects(move(message, '0x1234'), /invalid signature length/);
    assert.equal(await chain.isSpent(payer.address, message.nonce), false);
    await move(message, v, r, s);
  });

  test('only its authorizer can cancel an authorization, which is then unusable', async () => {
    const message = await authorization();
    const cancellation = (by: typeof payer) =>
      by.signTypedData({
        domain,
        types: { CancelAuthorization: typed({ authorizer: 'address', nonce: 'bytes32' }) },
        primaryType: 'CancelAuthorization',
        message: { authorizer: payer.address, nonce: message.nonce },
      });
    await assert.rejects(
      chain.cancel(payer.address, message.nonce, await cancellation(newPayer())),
      /invalid signature/,
    );
    await chain.cancel(payer.address, message.nonce, await cancellation(payer));
    assert.equal(await chain.isSpent(payer.address, message.nonce), true);
    await assert.rejects(move(message, await sign(message)), /authorization is used or canceled/);
  });

  test('a contract wallet pays with its owner’s signature (ERC-1271) only', async () => {
    const wallet = newPayer().address;
    await chain.placeWallet(wallet, payer.address);
    await chain.mint([wallet], 3000n);
    const message = { ...(await authorization()), from: wallet };
    const before = await chain.balanceOf(payee);
    await assert.rejects(move(message, `${await sign(message, newPayer())}00`), /invalid signature/);
    await move(message, `${await sign(message)}00`);
    assert.deepEqual([await chain.balanceOf(wallet), await chain.balanceOf(payee)], [0n, before + 3000n]);
  });

  test('without automatic mining nothing happens until a block is mined', async () => {
    await chain.automine(false);
    const before = await chain.balanceOf(payee);
    const message = await authorization();
    const moving = move(message, await sign(message));
    await waitFor('the transaction waits', async () => {
      const { transactions } = await client.getBlock({ blockTag: 'pending' });
      return transactions.length === 1;
    });
    assert.equal(await chain.balanceOf(payee), before);
    await chain.mine();
    await moving;
    assert.equal(await chain.balanceOf(payee), before + 3000n);
    await chain.automine(true);
  });
});

test('a stopped chain does not answer; stopping it again has no effect', needs, async () => {
  const chain = await startControlledChain();
  await chain.stop();
  await chain.stop();
  await assert.rejects(fetch(chain.url, { method: 'POST' }));
});

test('a chain ends with the process that started it, also if that is killed', needs, async () => {
  const script = new URL('./local-chain-process.ts', import.meta.url).pathname;
  const more = runtimeName === 'deno' ? ['run', '--allow-all', '--no-check', '--no-lock'] : [];
  const child = spawn(process.execPath, [...more, script]);
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
  const url = String(line).trim();
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const answers = () =>
    fetch(url, { method: 'POST' }).then(
      () => true,
      () => false,
    );
  assert.equal(await answers(), true);
  child.kill('SIGKILL');
  await waitFor('the chain is gone', async () => !(await answers()));
});
