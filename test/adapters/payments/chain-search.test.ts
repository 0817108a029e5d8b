// The search of the chain on a fake node with a long chain and a limit of blocks per request.
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { encodeEventTopics, type Hex, numberToHex, parseAbi } from 'viem';
import { rpcChain } from '#src/adapters/payments/chain.ts';
import { Cancel } from '#src/lib/time.ts';
import { startNodeFront } from '#test/support/node-front.ts';
import { lab, linesLogger, PAY_TO, payloadOf, presented, USDC, v2, wallet } from './lab.ts';

const HEAD = 30_000_000;
const BLOCK_SECONDS = 2;
const TX = `0x${'ab'.repeat(32)}` as Hex;
const OTHER = '0x2222222222222222222222222222222222222222';
const abi = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);

type Log = {
  address: string;
  topics: readonly unknown[];
  data: Hex;
  blockNumber: number;
  logIndex: number;
  removed?: boolean;
};
type Asked = { readonly method: string; readonly params: readonly Record<string, string>[] };

/** `logs`: the token's logs by block; `receipt`: all logs of one transaction. */
async function madeUpNode(logs: readonly Log[], receipt: readonly Log[] = logs) {
  const now = Math.floor(Date.now() / 1000);
  const asked: Asked[] = [];
  const timeOf = (block: number) => now - (HEAD - block) * BLOCK_SECONDS;
  const block = (number: number) => ({
    number: numberToHex(number),
    timestamp: numberToHex(Math.max(0, timeOf(number))),
    transactions: [],
  });
  const wire = (log: Log) => ({
    ...log,
    blockNumber: numberToHex(log.blockNumber),
    blockHash: TX,
    logIndex: numberToHex(log.logIndex),
    transactionIndex: '0x0',
    transactionHash: TX,
  });
  const answers: Record<string, (params: never) => unknown> = {
    eth_chainId: () => numberToHex(8453),
    eth_getBlockByNumber: ([at]: [string]) => block(at === 'latest' ? HEAD : Number(at)),
    eth_call: () => `0x${'1'.padStart(64, '0')}`,
    eth_getLogs: ([{ fromBlock, toBlock }]: [Record<string, string>]) =>
      logs
        .filter(({ blockNumber }) => blockNumber >= Number(fromBlock) && blockNumber <= Number(toBlock))
        .map(wire),
    eth_getTransactionReceipt: () => ({ status: '0x1', logs: receipt.map(wire), transactionHash: TX }),
  };
  const server = http.createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const { id, method, params = [] } = JSON.parse(text) as { id: number } & Asked;
    asked.push({ method, params });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method]?.(params as never) }));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    blockAt: (time: number) => HEAD - Math.floor((now - time) / BLOCK_SECONDS),
    ranges: () =>
      asked
        .filter(({ method }) => method === 'eth_getLogs')
        .map(({ params: [filter] }) => Number(filter?.toBlock) - Number(filter?.fromBlock) + 1),
    count: (method: string) => asked.filter((one) => one.method === method).length,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

/** A payment that expired `secondsAgo`, with the ending logs that `make` returns. */
async function look(secondsAgo: number, make: (facts: Facts) => readonly Log[], receipt?: readonly Log[]) {
  const account = wallet();
  const validBefore = Math.floor(Date.now() / 1000) - secondsAgo;
  const payload = await payloadOf(account, { validBefore: String(validBefore) });
  const nonce = payload.authorization.nonce as Hex;
  const logs: Log[] = [];
  await using node = await madeUpNode(logs, receipt);
  logs.push(
    ...make({ from: account.address, nonce, block: node.blockAt(validBefore - 30), blockAt: node.blockAt }),
  );
  const logger = linesLogger();
  const payment = await presented(await lab(), v2(payload));
  const finding = await rpcChain({ rpcUrl: node.url, logger }).lookUp(payment);
  const ranges = node.ranges();
  assert.ok(
    ranges.every((blocks) => blocks <= 2000),
    'a range that public nodes refuse',
  );
  return { finding, ranges, blocks: node.count('eth_getBlockByNumber'), lines: logger.lines };
}
type Facts = { from: Hex; nonce: Hex; block: number; blockAt: (time: number) => number };

const ended = (
  eventName: 'AuthorizationUsed' | 'AuthorizationCanceled',
  { from, nonce, block }: Facts,
): Log => ({
  address: USDC,
  topics: encodeEventTopics({ abi, eventName, args: { authorizer: from, nonce } }),
  data: '0x',
  blockNumber: block,
  logIndex: 7,
});
const transfer = (
  { from, block }: Facts,
  changes: Partial<Log> & { to?: string; value?: bigint } = {},
): Log => {
  const { to = PAY_TO, value = 3000n, ...rest } = changes;
  return {
    address: USDC,
    topics: encodeEventTopics({ abi, eventName: 'Transfer', args: { from, to: to as Hex } }),
    data: numberToHex(value, { size: 32 }),
    blockNumber: block,
    logIndex: 8,
    ...rest,
  };
};
const paid = { outcome: 'paid', transaction: TX };
const DAY = 86_400;

test('a payment of the last minutes is found with few requests', async () => {
  const { finding, ranges, blocks } = await look(60, (facts) => [
    ended('AuthorizationUsed', facts),
    transfer(facts),
  ]);
  assert.deepEqual(finding, paid);
  assert.equal(ranges.length, 1);
  assert.ok(blocks <= 4, `${blocks} blocks asked for`);
});

test('an old payment is found by a search from its own time', async () => {
  for (const age of [DAY, 30 * DAY, 600 * DAY]) {
    const { finding, ranges, blocks } = await look(age, (facts) => [
      ended('AuthorizationUsed', facts),
      transfer(facts),
    ]);
    assert.deepEqual(finding, paid);
    assert.ok(ranges.length <= 2, `${ranges.length} ranges`);
    assert.ok(blocks <= 40, `${blocks} blocks asked for`);
  }
});

test('a cancellation a day after the expiry is found', async () => {
  const late = await look(2 * DAY, (facts) => [
    ended('AuthorizationCanceled', { ...facts, block: facts.block + DAY / BLOCK_SECONDS }),
  ]);
  assert.deepEqual(late.finding, { outcome: 'cancelled' });
});

test('a log that is not found within the limit of ranges is unavailable', async () => {
  const never = await look(20 * DAY, () => []);
  assert.deepEqual(never.finding, { outcome: 'unavailable' });
  assert.equal(never.ranges.length, 60);
});

test('a log of a removed block is ignored', async () => {
  const { finding } = await look(60, (facts) => [
    { ...ended('AuthorizationUsed', facts), removed: true },
    transfer(facts),
  ]);
  assert.deepEqual(finding, { outcome: 'unavailable' });
});

test('spent elsewhere: the payer’s transfer right after the use has another recipient or amount', async () => {
  const others: ((facts: Facts) => readonly Log[])[] = [
    (facts) => [transfer(facts, { to: OTHER })],
    (facts) => [transfer(facts, { value: 2999n })],
    (facts) => [transfer(facts, { to: OTHER }), transfer(facts, { logIndex: 9 })],
  ];
  for (const more of others) {
    const { finding } = await look(60, (facts) => [ended('AuthorizationUsed', facts), ...more(facts)]);
    assert.deepEqual(finding, { outcome: 'spent_elsewhere' });
  }
});

test('a use without the payer’s transfer right after it is unavailable: other tokens may order their logs otherwise', async () => {
  const others: ((facts: Facts) => readonly Log[])[] = [
    () => [],
    (facts) => [transfer(facts, { address: OTHER })],
    (facts) => [transfer({ ...facts, from: OTHER })],
    (facts) => [ended('AuthorizationUsed', { ...facts, nonce: TX }), transfer(facts)],
    (facts) => [{ ...transfer(facts), data: '0x' }],
  ];
  for (const more of others) {
    const { finding, lines } = await look(60, (facts) => [ended('AuthorizationUsed', facts), ...more(facts)]);
    assert.deepEqual(finding, { outcome: 'unavailable' });
    assert.deepEqual(
      lines.map(({ fields }) => fields),
      [{ code: 'transfer_not_found' }],
    );
  }
  const before = await look(60, (facts) => [transfer(facts), ended('AuthorizationUsed', facts)]);
  assert.deepEqual(before.finding, { outcome: 'unavailable' });
});

test('logs of a node that filters loosely, or a transaction without the use, are not a result', async () => {
  const others: ((facts: Facts) => readonly Log[])[] = [
    (facts) => [ended('AuthorizationUsed', { ...facts, nonce: TX }), transfer(facts)],
    (facts) => [ended('AuthorizationCanceled', { ...facts, from: OTHER })],
    (facts) => [{ ...ended('AuthorizationCanceled', facts), address: OTHER }],
    (facts) => [transfer(facts)],
  ];
  for (const make of others) {
    assert.deepEqual((await look(60, make)).finding, { outcome: 'unavailable' });
  }
  const hidden = await look(60, (facts) => [ended('AuthorizationUsed', facts)], []);
  assert.deepEqual(hidden.finding, { outcome: 'unavailable' });
  assert.deepEqual(
    hidden.lines.map(({ fields }) => fields),
    [{ code: 'transfer_not_found' }],
  );
});

test('the search for the first block ends with its caller', async () => {
  await using node = await madeUpNode([]);
  const front = await startNodeFront(node.url);
  const ending = new Cancel();
  let blocks = 0;
  front.rule(({ method }) => {
    if (method !== 'eth_getBlockByNumber' || ++blocks < 5) return 'pass';
    ending.abort();
    return 'hang';
  });
  const validBefore = String(Math.floor(Date.now() / 1000) - 600 * DAY);
  const payment = await presented(await lab(), v2(await payloadOf(wallet(), { validBefore })));
  const chain = rpcChain({ rpcUrl: front.url, logger: linesLogger() });
  assert.deepEqual(await chain.lookUp(payment, { signal: ending }), { outcome: 'unavailable' });
  await front.closed();
  assert.equal(blocks, 5);
  await front.down();
});
