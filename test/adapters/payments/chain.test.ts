// Look-ups on a real chain: anvil with our token, whose events are those of USDC.
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createWalletClient, type Hex, parseAbi, publicActions, http as rpc } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { X402 } from '#src/adapters/payments/x402.ts';
import { devAccount, type LocalChain, startLocalChain, TOKEN, viemChain } from '#src/demo/payments/chain.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import {
  type Authorization,
  authorizationOf,
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
  let chain: LocalChain;
  let x402: X402 & { readonly lines: readonly { fields: unknown; message: string }[] };
  before(async () => {
    chain = await startLocalChain();
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

  test('unused, with the chain’s time: before its expiry and after', async () => {
    const { payment } = await paying();
    const now = await chain.time();
    assert.deepEqual(await x402.payments.lookUp(payment), { outcome: 'unused', chainTimeSeconds: now });
    await chain.advance(1000);
    const finding = await x402.payments.lookUp(payment);
    assert.ok(finding.outcome === 'unused' && finding.chainTimeSeconds > Number(payment.validBefore) + 60);
  });

  test('paid, with its transaction; also long after its expiry', async () => {
    const { payload, payment } = await paying();
    const transaction = await transfer(payload);
    assert.deepEqual(await x402.payments.lookUp(payment), { outcome: 'paid', transaction });
    await chain.advance(7 * 86_400);
    assert.deepEqual(await x402.payments.lookUp(payment), { outcome: 'paid', transaction });
  });

  test('cancelled; also after its expiry', async () => {
    for (const seconds of [0, 3600]) {
      const { account, payment } = await paying();
      await chain.advance(seconds);
      await chain.cancel(account.address, payment.nonce as Hex, await cancellation(account, payment));
      assert.deepEqual(await x402.payments.lookUp(payment), { outcome: 'cancelled' });
      await chain.advance(86_400);
      assert.deepEqual(await x402.payments.lookUp(payment), { outcome: 'cancelled' });
    }
  });

  test('spent elsewhere: the same nonce, another recipient or amount', async () => {
    for (const changes of [{ to: OTHER }, { value: '2999' }]) {
      const { account, payload, payment } = await paying();
      const authorization = { ...payload.authorization, ...changes };
      await transfer({ authorization, signature: await signatureOf(account, authorization) });
      assert.deepEqual(await x402.payments.lookUp(payment), { outcome: 'spent_elsewhere' });
    }
  });

  test('another payer’s use of the same nonce is not this payment', async () => {
    const { payment } = await paying();
    const { payload } = await paying({ nonce: payment.nonce });
    await transfer(payload);
    assert.equal((await x402.payments.lookUp(payment)).outcome, 'unused');
  });

  test('another authorization of the same payer is not this payment', async () => {
    const first = await paying();
    const authorization = authorizationOf(first.account, {
      validAfter: first.payload.authorization.validAfter,
      validBefore: first.payload.authorization.validBefore,
      to: OTHER,
    });
    const other = { authorization, signature: await signatureOf(first.account, authorization) };
    await transfer(other);
    assert.equal((await x402.payments.lookUp(first.payment)).outcome, 'unused');
    const paid = await transfer(first.payload);
    assert.deepEqual(await x402.payments.lookUp(first.payment), { outcome: 'paid', transaction: paid });
  });

  test('used too long ago to be found: unavailable', async () => {
    const { payment, payload, account } = await paying();
    await chain.cancel(account.address, payment.nonce as Hex, await cancellation(account, payment));
    await mine(chain.url, 1200);
    const validBefore = String((await chain.time()) + 120);
    const authorization = { ...payload.authorization, validBefore };
    const late = await presented(
      x402,
      v2({ authorization, signature: await signatureOf(account, authorization) }),
    );
    assert.deepEqual(await x402.payments.lookUp(late), { outcome: 'unavailable' });
  });

  test('a node of another chain is unavailable, and the log says why', async () => {
    const proxy = await rpcProxy(chain.url, (method) => (method === 'eth_chainId' ? '0x1' : undefined));
    try {
      const other = await lab({ x402: { rpcUrl: proxy.url } });
      const { payment } = await paying();
      assert.deepEqual(await other.payments.lookUp(payment), { outcome: 'unavailable' });
      assert.deepEqual(other.lines[0]?.fields, { code: 'other_chain' });
    } finally {
      await proxy.close();
    }
  });

  test('a hanging node is unavailable within ten seconds; no log line contains its address', async () => {
    const proxy = await rpcProxy(chain.url, (method) => (method === 'eth_call' ? 'never' : undefined));
    try {
      const slow = await lab({ x402: { rpcUrl: `${proxy.url}/v2/api-key-secret` } });
      const { payment } = await paying();
      assert.deepEqual(await slow.payments.lookUp(payment), { outcome: 'unavailable' });
      assert.equal(slow.lines.length, 1);
      assert.doesNotMatch(JSON.stringify(slow.lines), /api-key|127\.0\.0\.1|0x/);
    } finally {
      await proxy.close();
    }
  });
});

test('a node that is unreachable: unavailable, logged once, without its address', async () => {
  const unreachable = await lab({ x402: { rpcUrl: `${UNREACHABLE_URL}/v2/api-key-secret` } });
  const payment = await presented(unreachable, v2(await payloadOf(wallet())));
  for (let i = 0; i < 2; i++)
    assert.deepEqual(await unreachable.payments.lookUp(payment), { outcome: 'unavailable' });
  assert.deepEqual(unreachable.lines, [
    {
      level: 'warn',
      message: 'the chain gave no usable answer about a payment',
      fields: { code: 'rpc_failed' },
    },
  ]);
});

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
    args: [
      from as Hex,
      to as Hex,
      BigInt(value),
      BigInt(validAfter),
      BigInt(validBefore),
      nonce as Hex,
      signature as Hex,
    ],
  });
  const { status } = await client.waitForTransactionReceipt({ hash });
  assert.equal(status, 'success');
  return hash;
}

/** One per minute. */
const mine = (url: string, blocks: number) => ask(url, 'anvil_mine', [`0x${blocks.toString(16)}`, '0x3c']);

async function ask(url: string, method: string, params: unknown[]): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const answer = (await response.json()) as { error?: unknown };
  assert.equal(answer.error, undefined);
}

const cancellation = (account: PrivateKeyAccount, { nonce }: PresentedPayment): Promise<Hex> =>
  account.signTypedData({
    domain: { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: TOKEN },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce: nonce as Hex },
  });

/** Hands calls on to a node; `answer` may give a result of its own for a method, or never answer it. */
async function rpcProxy(target: string, answer: (method: string) => string | undefined) {
  const server = http.createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const { id, method } = JSON.parse(text) as { id: number; method: string };
    const own = answer(method);
    if (own === 'never') return;
    response.writeHead(200, { 'content-type': 'application/json' });
    if (own !== undefined) return response.end(JSON.stringify({ jsonrpc: '2.0', id, result: own }));
    const through = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: text,
    });
    return response.end(await through.text());
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
