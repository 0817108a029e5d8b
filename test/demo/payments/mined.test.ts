// The receipt of a transaction is found in any order of blocks and polls.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { HTTPFacilitatorClient } from '@x402/core/http';
import { type Hex, type TransactionReceipt, TransactionReceiptNotFoundError } from 'viem';
import { singleExchange } from '#src/adapters/payments/exchange.ts';
import { mined } from '#src/demo/payments/chain.ts';
import { type LocalFacilitator, startLocalFacilitator } from '#src/demo/payments/facilitator.ts';
import { type ControlledChain, startControlledChain } from '#test/support/chain/controlled-chain.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { makePayment, newPayer, requiring, termsOf } from '#test/support/chain/payer.ts';
import {
  jsonOf,
  type LoopbackServer,
  loopbackServer,
  sendJson,
} from '#test/support/process/loopback-server.ts';
import { waitFor } from '#test/support/process/service.ts';

const needs = needsAnvil();
const hash: Hex = `0x${'ab'.repeat(32)}`;

test('polls until the receipt exists', async () => {
  const receipt = { status: 'success' } as TransactionReceipt;
  let polls = 0;
  const getTransactionReceipt = async () => {
    polls += 1;
    if (polls < 3) throw new TransactionReceiptNotFoundError({ hash });
    return receipt;
  };
  assert.equal(await mined({ getTransactionReceipt }, hash), receipt);
  assert.equal(polls, 3);
});

test('a failed request is not repeated', async () => {
  let polls = 0;
  const getTransactionReceipt = async () => {
    polls += 1;
    throw new Error('unavailable');
  };
  await assert.rejects(mined({ getTransactionReceipt }, hash), /unavailable/);
  assert.equal(polls, 1);
});

describe('the local facilitator', needs, () => {
  let chain: ControlledChain;
  let front: LoopbackServer;
  let local: LocalFacilitator;
  /** Called for each request to the chain; the answer waits for the promise. */
  let onRequest: (method: string, params: readonly unknown[]) => Promise<void> | undefined = () => undefined;

  before(async () => {
    chain = await startControlledChain();
    front = await loopbackServer(async (request, response) => {
      const body = await jsonOf<{ method: string; params?: readonly unknown[] }>(request);
      const answer = await singleExchange({ url: chain.url, body, timeoutMs: 30_000 });
      await onRequest(body.method, body.params ?? []);
      if ('code' in answer) throw new Error(answer.code);
      sendJson(response, answer.json, answer.status);
    });
    local = await startLocalFacilitator({ rpcUrl: front.url });
  });
  after(async () => {
    await local.stop();
    await front.down();
    await chain.stop();
  });

  test('finds the last block, also if it is mined while the facilitator reads the one before', async () => {
    const payer = newPayer();
    await chain.mint([payer.address], 3000n);
    const terms = termsOf();
    const { payload } = await makePayment(payer, requiring(terms));

    const seen = { receipts: 0, numbers: 0, held: false, settled: false };
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    onRequest = (method, params) => {
      if (method === 'eth_getTransactionReceipt') seen.receipts += 1;
      if (method === 'eth_blockNumber') seen.numbers += 1;
      if (method !== 'eth_getBlockByNumber' || params[1] !== true) return undefined;
      seen.held = true;
      return released;
    };
    await chain.automine(false);
    const settling = new HTTPFacilitatorClient({ url: local.url }).settle(payload, terms).finally(() => {
      seen.settled = true;
    });
    await waitFor('the facilitator polls', () => seen.held || seen.receipts >= 3);
    const { numbers } = seen;
    await chain.mine();
    await waitFor('the facilitator has seen the block', () => seen.settled || seen.numbers >= numbers + 3);
    release();
    const { success, errorReason } = await settling;
    assert.deepEqual([success, errorReason], [true, undefined]);
  });
});
