// Blocks and transfers as a node returns them: logs that were not asked for, refused ranges, unknown tags, no answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Hex, numberToHex, pad } from 'viem';
import { chainScan } from '#src/adapters/payments/chain-scan.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { ChainUnavailable } from '#src/ports/chain-scan.ts';
import {
  CANCELLED,
  HEAD,
  hashOf,
  type NodeLog,
  startScriptedNode,
  TRANSFER,
  timeOf,
  USED,
} from '#test/support/chain/scripted-node.ts';
import { PAY_TO, UNREACHABLE_URL, USDC } from './lab.ts';

const ASSET = USDC.toLowerCase();
const PAYER = '0x2222222222222222222222222222222222222222';
const OTHER = '0x3333333333333333333333333333333333333333';
const NONCE = `0x${'7'.repeat(64)}`;
const TX = `0x${'ab'.repeat(32)}`;
const topic = (address: string) => pad(address.toLowerCase() as Hex);

const log = (
  block: number,
  logIndex: number,
  topics: readonly string[],
  changes: Partial<NodeLog> = {},
): NodeLog => ({
  address: USDC,
  topics,
  data: '0x',
  blockNumber: block,
  logIndex,
  transactionHash: TX,
  ...changes,
});
const transfer = (block: number, logIndex: number, changes: Partial<NodeLog> = {}, value = 3000n): NodeLog =>
  log(block, logIndex, [TRANSFER, topic(PAYER), topic(PAY_TO)], {
    data: numberToHex(value, { size: 32 }),
    ...changes,
  });
const used = (block: number, logIndex: number, changes: Partial<NodeLog> = {}) =>
  log(block, logIndex, [USED, topic(PAYER), NONCE], changes);

const scanOf = (rpcUrl: string, confirmations: number | null = null) =>
  chainScan({ rpcUrl, network: 'eip155:8453', asset: ASSET, confirmations, clock: systemClock() });
const request = (from: number, to: number, payers: readonly string[] = []) => ({
  payee: PAY_TO,
  from,
  to,
  maxTransfers: 1000,
  payers,
});
const paid = { transaction: TX, block: 50, sender: PAYER, amount: 3000n, nonce: NONCE };
const read = (to: number) => ({ to, hash: hashOf(to), transfers: [paid], sent: [], ended: [] });
const unavailable = (code: string) => (error: unknown) =>
  error instanceof ChainUnavailable && error.code === code;

test('a transfer right after the use of its sender’s authorization has its nonce', async () => {
  await using node = await startScriptedNode([used(50, 4), transfer(50, 5)]);
  assert.deepEqual(await scanOf(node.url).scan(request(1, 100)), read(100));
});

test('any other transfer has none', async () => {
  for (const logs of [
    [transfer(50, 5)],
    [used(50, 3), transfer(50, 5)],
    [used(50, 6), transfer(50, 5)],
    [used(50, 4, { transactionHash: `0x${'cd'.repeat(32)}` }), transfer(50, 5)],
    [used(49, 4), transfer(50, 5)],
    [used(50, 4, { topics: [USED, topic(OTHER), NONCE] }), transfer(50, 5)],
    [used(50, 4, { topics: [CANCELLED, topic(PAYER), NONCE] }), transfer(50, 5)],
    [used(50, 4, { address: OTHER }), transfer(50, 5)],
  ]) {
    await using node = await startScriptedNode(logs);
    const { transfers } = await scanOf(node.url).scan(request(1, 100));
    assert.deepEqual(transfers, [{ ...paid, nonce: null }]);
  }
});

test('a node that filters loosely or repeats itself: what was not asked for does not count', async () => {
  await using node = await startScriptedNode([
    used(50, 4),
    transfer(50, 5),
    transfer(50, 5),
    transfer(50, 7, { address: OTHER }),
    transfer(50, 8, { topics: [TRANSFER, topic(PAYER), topic(OTHER)] }),
    transfer(50, 9, { topics: [USED, topic(PAYER), topic(PAY_TO)] }),
    transfer(50, 10, { topics: [TRANSFER, topic(PAYER), topic(PAY_TO), NONCE] }),
    transfer(50, 11, { removed: true }),
    transfer(50, 12, { blockNumber: null }),
    transfer(50, 13, { data: '0x' }),
    transfer(0, 1),
    transfer(101, 1),
  ]);
  node.faults.isLoose = true;
  const { transfers } = await scanOf(node.url).scan(request(1, 100));
  assert.deepEqual(transfers, [paid]);
});

test('refused ranges shrink, all blocks are read once, and larger ranges are tried again later', async () => {
  await using node = await startScriptedNode([used(9_000, 4), transfer(9_000, 5)]);
  node.faults.maxBlocks = 30;
  const scan = scanOf(node.url);
  const { to, transfers } = await scan.scan(request(1, HEAD));
  assert.equal(to, HEAD);
  assert.deepEqual(transfers, [{ ...paid, block: 9_000 }]);
  const taken = node.ranges.filter(([from, last]) => last - from < 30);
  assert.equal(taken[0]?.[0], 1);
  // Transfers in both directions and authorizations are of the same range.
  const ranges = taken.filter(([from], i) => taken[i - 1]?.[0] !== from);
  for (const [i, [from]] of ranges.entries()) if (i > 0) assert.equal(from, (ranges[i - 1]?.[1] ?? 0) + 1);
  const refused = (node.ranges.length - taken.length) / 2;
  assert.ok(refused >= 2 && refused < 15, `${refused} refused`);
});

test('a node that takes large ranges gets them: at most 2000 blocks', async () => {
  await using node = await startScriptedNode();
  await scanOf(node.url).scan(request(1, HEAD));
  const sizes = node.ranges.map(([from, to]) => to - from + 1);
  assert.equal(Math.max(...sizes), 2000);
  assert.ok(node.batches.length < 15, `${node.batches.length} requests`);
});

test('a node that limits the rate meanwhile: the blocks that were read count, and the next scan continues after them', async () => {
  await using node = await startScriptedNode([used(50, 4), transfer(50, 5)]);
  const scan = scanOf(node.url);
  node.faults.limitedFrom = 101;
  assert.deepEqual(await scan.scan(request(1, 500)), read(100));
  await assert.rejects(scan.scan(request(101, 500)), unavailable('rpc_failed'));
  node.faults.limitedFrom = Number.POSITIVE_INFINITY;
  assert.equal((await scan.scan(request(101, 500))).to, 500);
  const rest = node.ranges.filter(([from]) => from > 100);
  assert.ok(rest.length <= 4, `${rest.length} requests`);
});

test('enough transfers: the scan ends with their range', async () => {
  const many = Array.from({ length: 300 }, (_, i) => transfer(i + 1, 1));
  await using node = await startScriptedNode(many);
  const { to, transfers } = await scanOf(node.url).scan({ ...request(1, 300), maxTransfers: 50 });
  assert.deepEqual([to, transfers.length], [100, 100]);
});

test('the block that counts: the safe one, or a number of blocks before the last', async () => {
  await using node = await startScriptedNode();
  const safe = (number: number) => ({ number, hash: hashOf(number), time: timeOf(number) });
  assert.deepEqual(await scanOf(node.url).safeBlock(), safe(HEAD - 10));
  assert.deepEqual(await scanOf(node.url, 0).safeBlock(), safe(HEAD));
  assert.deepEqual(await scanOf(node.url, 64).safeBlock(), safe(HEAD - 64));
  assert.deepEqual(await scanOf(node.url, HEAD + 5).safeBlock(), safe(0));
  node.faults.safe = 'unknown';
  await assert.rejects(scanOf(node.url).safeBlock(), unavailable('no_safe_block'));
  assert.deepEqual(await scanOf(node.url, 3).safeBlock(), safe(HEAD - 3));
});

test('a node of another chain, that does not answer, or is not there', async () => {
  await using node = await startScriptedNode();
  node.faults.chainId = 1;
  await assert.rejects(scanOf(node.url).safeBlock(), unavailable('other_chain'));
  await assert.rejects(scanOf(UNREACHABLE_URL).safeBlock(), unavailable('rpc_failed'));
  node.faults.hangs = new Set(['eth_getLogs']);
  const stop = new AbortController();
  const scanning = scanOf(node.url).scan(request(1, 100), stop.signal);
  stop.abort();
  await assert.rejects(scanning, unavailable('stopped'));
});

test('the block before a time is near it', async () => {
  await using node = await startScriptedNode();
  const before = await scanOf(node.url).blockBefore(timeOf(5000));
  assert.ok(before <= 5000 && before > 4000, String(before));
});

test('a receipt of a transaction that is pending: it is in no block', async () => {
  await using node = await startScriptedNode([], { receipt: [transfer(50, 5, { blockNumber: null })] });
  assert.equal(await scanOf(node.url).blockOf(TX), null);
});

test('a malformed log: the blocks before it are read, and no answer is taken from its own', async () => {
  for (const changes of [
    { transactionHash: '0xabc' },
    { topics: [TRANSFER, topic(PAYER), topic(PAY_TO), 'x'] },
    { data: `0x${'z'.repeat(64)}` },
    { address: '0x12' },
    { logIndex: Number.MAX_SAFE_INTEGER },
  ]) {
    await using node = await startScriptedNode([used(50, 4), transfer(50, 5), transfer(60, 1, changes)]);
    node.faults.isLoose = 'within the blocks';
    const scan = scanOf(node.url);
    assert.deepEqual(await scan.scan(request(1, 100)), read(59));
    await assert.rejects(scan.scan(request(60, 100)), unavailable('malformed'));
  }
});

test('a malformed block, and another than was asked for: no answer', async () => {
  await using node = await startScriptedNode();
  const malformed: readonly Record<string, string>[] = [
    { hash: '0x12' },
    { number: `0x${'f'.repeat(20)}` },
    { timestamp: `0x${'f'.repeat(10)}` },
  ];
  for (const block of malformed) {
    node.faults.block = block;
    await assert.rejects(scanOf(node.url).safeBlock(), unavailable('malformed'));
    await assert.rejects(scanOf(node.url).block(7), unavailable('malformed'));
  }
  node.faults.block = { number: numberToHex(8) };
  await assert.rejects(scanOf(node.url).block(7), unavailable('malformed'));
});

test('logs and their last block come from one batch request', async () => {
  await using node = await startScriptedNode([used(50, 4), transfer(50, 5)]);
  await scanOf(node.url).scan(request(1, 100));
  assert.deepEqual(
    node.batches.map((methods) => methods.join(' ')),
    ['eth_getLogs eth_getLogs eth_getBlockByNumber', 'eth_getLogs eth_getBlockByNumber'],
  );
});

test('a node that lacks the last block has answered nothing, although it answered no logs', async () => {
  await using node = await startScriptedNode([used(HEAD, 4), transfer(HEAD, 5)]);
  node.faults.replicas = [HEAD - 4];
  for (const batch of [null, { code: -32600, message: 'batch requests are not supported' }]) {
    node.faults.batch = batch;
    await assert.rejects(scanOf(node.url).scan(request(HEAD - 20, HEAD)), unavailable('behind'));
  }
});

test('of two replicas that answer in turn, the one that lags is never believed', async () => {
  await using node = await startScriptedNode([used(HEAD, 4), transfer(HEAD, 5)]);
  node.faults.replicas = [HEAD, HEAD - 4, HEAD - 4];
  const scan = scanOf(node.url);
  let answers = 0;
  for (let i = 0; i < 6; i++) {
    const answer = await scan.scan(request(HEAD - 20, HEAD)).catch(unavailable('behind'));
    if (typeof answer === 'boolean') continue;
    answers++;
    assert.deepEqual(answer.transfers, [{ ...paid, block: HEAD }]);
  }
  node.faults.replicas = [];
  assert.deepEqual((await scan.scan(request(HEAD - 20, HEAD))).transfers.length, 1);
  assert.ok(answers < 6);
});

for (const [what, batch] of [
  ['an error', { code: -32600, message: 'batch requests are not supported' }],
  [
    'drpc’s error of the free tier',
    { code: 31, message: 'Batch of more than 3 requests are not allowed on free tier', status: 500 },
  ],
  ['status 400 without JSON', { status: 400 }],
  ['status 413 without JSON', { status: 413 }],
] as const)
  test(`a node that answers a batch with ${what}: the calls are made between two reads of the block`, async () => {
    await using node = await startScriptedNode([used(50, 4), transfer(50, 5)]);
    node.faults.batch = batch;
    const scan = scanOf(node.url);
    assert.deepEqual(await scan.scan(request(1, 100)), read(100));
    const before = node.batches.length;
    assert.deepEqual(await scan.scan(request(1, 100)), read(100));
    assert.equal(node.batches.length, before, 'it is remembered');
  });

test('a node without batches whose block changes between the two reads: no answer', async () => {
  await using node = await startScriptedNode([used(50, 4), transfer(50, 5)]);
  node.faults.batch = { status: 400 };
  const scan = scanOf(node.url);
  const { answers } = node;
  let reads = 0;
  const first = answers.eth_getBlockByNumber;
  answers.eth_getBlockByNumber = (...params) =>
    ++reads % 2 === 0 ? { ...(first?.(...params) as object), hash: hashOf(1) } : first?.(...params);
  await assert.rejects(scan.scan(request(1, 100)), unavailable('replicas_differ'));
});

test('a balance that the node does not give', async () => {
  await using node = await startScriptedNode();
  node.faults.fails = new Map([['eth_call', { status: 503 }]]);
  await assert.rejects(scanOf(node.url).balanceOf(PAY_TO, 60), unavailable('rpc_failed'));
});
