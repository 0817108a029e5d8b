// The transfers of a transaction: found once its block counts, by the rule of the comparison with the chain.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Hex, numberToHex, pad } from 'viem';
import { findTransfers } from '#src/adapters/payments/refund-transfers.ts';
import { HEAD, startScriptedNode, TRANSFER, timeOf } from '#test/support/chain/scripted-node.ts';
import { PAY_TO, UNREACHABLE_URL, USDC } from './lab.ts';

const PAYER = '0x2222222222222222222222222222222222222222';
const TX = `0x${'ab'.repeat(32)}`;
const topic = (address: string) => pad(address.toLowerCase() as Hex);
const refund = (blockNumber: number) => ({
  address: USDC,
  topics: [TRANSFER, topic(PAY_TO), topic(PAYER)],
  data: numberToHex(3000n, { size: 32 }),
  blockNumber,
  logIndex: 1,
  transactionHash: TX,
});
const found = (block: number) => ({
  outcome: 'found',
  network: 'eip155:8453',
  atSeconds: timeOf(block),
  transfers: [{ asset: USDC.toLowerCase(), sender: PAY_TO.toLowerCase(), recipient: PAYER, amount: 3000n }],
});

test('a transaction in a block that counts is found; in a later one it is unconfirmed, by so many blocks', async () => {
  const cases: [block: number, confirmations: number | null, blocks: number][] = [
    [HEAD - 10, null, 0],
    [HEAD - 9, null, 1],
    [HEAD, null, 10],
    [HEAD, 0, 0],
    [HEAD - 12, 12, 0],
    [HEAD - 11, 12, 1],
    [HEAD, 12, 12],
  ];
  for (const [block, confirmations, blocks] of cases) {
    await using node = await startScriptedNode([refund(block)]);
    const expected = blocks === 0 ? found(block) : { outcome: 'unconfirmed', blocks };
    assert.deepEqual(await findTransfers(node.url, TX, confirmations), expected);
  }
});

test('a node without the tag safe is named; one that does not answer, or has no such transaction, too', async () => {
  await using node = await startScriptedNode([refund(50)]);
  const missing = { outcome: 'missing', network: 'eip155:8453' };
  assert.deepEqual(await findTransfers(node.url, `0x${'0'.repeat(64)}`, null), missing);
  node.faults.safe = 'unknown';
  assert.deepEqual(await findTransfers(node.url, TX, null), { outcome: 'no_safe_block' });
  assert.deepEqual(await findTransfers(node.url, TX, 3), found(50));
  assert.deepEqual(await findTransfers(UNREACHABLE_URL, TX, null), { outcome: 'unavailable' });
});
