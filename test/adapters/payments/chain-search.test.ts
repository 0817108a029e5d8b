// The search of the chain on a fake node with a long chain and a limit of blocks per request.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeEventTopics, type Hex, numberToHex, parseAbi } from 'viem';
import { rpcChain } from '#src/adapters/payments/chain.ts';
import { LARGEST_RANGE, rangeSizes } from '#src/adapters/payments/chain-logs.ts';
import { Cancel } from '#src/lib/time.ts';
import { collectingLogger } from '#test/support/fakes.ts';
import { jsonOf, loopbackServer, sendJson } from '#test/support/loopback-server.ts';
import { startNodeFront } from '#test/support/node-front.ts';
import { lab, PAY_TO, payloadOf, presented, USDC, v2, wallet } from './lab.ts';

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

type Refusal = { readonly status: number } | { readonly code: number };

/** `receipt`: all logs of one transaction. `maxBlocks`: of one request for logs. `refusal`: of all of them, while it is not null. */
type NodeOptions = {
  readonly receipt?: readonly Log[];
  readonly maxBlocks?: number;
  refusal?: Refusal | null;
};

/** `logs`: the token's logs by block. */
async function madeUpNode(logs: readonly Log[], options: NodeOptions = {}) {
  const { receipt = logs, maxBlocks = Number.POSITIVE_INFINITY } = options;
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
  const server = await loopbackServer(async (request, response) => {
    const { id, method, params = [] } = await jsonOf<{ id: number } & Asked>(request);
    asked.push({ method, params });
    const refusal = method === 'eth_getLogs' ? (options.refusal ?? null) : null;
    if (refusal !== null && 'status' in refusal) return sendJson(response, {}, refusal.status);
    if (refusal !== null)
      return sendJson(response, { jsonrpc: '2.0', id, error: { ...refusal, message: 'refused' } });
    const isRefused = method === 'eth_getLogs' && blocksOf(params[0]) > maxBlocks;
    const answer = isRefused
      ? { error: { code: -32602, message: `up to a ${maxBlocks} block range` } }
      : { result: answers[method]?.(params as never) };
    sendJson(response, { jsonrpc: '2.0', id, ...answer });
  });
  return {
    url: server.url,
    blockAt: (time: number) => HEAD - Math.floor((now - time) / BLOCK_SECONDS),
    ranges: () =>
      asked.filter(({ method }) => method === 'eth_getLogs').map(({ params: [filter] }) => blocksOf(filter)),
    count: (method: string) => asked.filter((one) => one.method === method).length,
    [Symbol.asyncDispose]: server.down,
  };
}

const blocksOf = (filter: Record<string, string> | undefined): number =>
  Number(filter?.toBlock) - Number(filter?.fromBlock) + 1;

/** A payment that expired `secondsAgo`, on a node with the ending logs that `make` returns. */
async function searched(secondsAgo: number, make: (facts: Facts) => readonly Log[], options: NodeOptions) {
  const account = wallet();
  const validBefore = Math.floor(Date.now() / 1000) - secondsAgo;
  const payload = await payloadOf(account, { validBefore: String(validBefore) });
  const nonce = payload.authorization.nonce as Hex;
  const logs: Log[] = [];
  const node = await madeUpNode(logs, options);
  logs.push(
    ...make({ from: account.address, nonce, block: node.blockAt(validBefore - 30), blockAt: node.blockAt }),
  );
  const logger = collectingLogger();
  const payment = await presented(await lab(), v2(payload));
  return { chain: rpcChain({ rpcUrl: node.url, logger }), payment, node, logger };
}

/** `again`: looked up once more. */
async function look(
  secondsAgo: number,
  make: (facts: Facts) => readonly Log[],
  { again = false, ...options }: NodeOptions & { readonly again?: boolean } = {},
) {
  const { chain, payment, logger, ...made } = await searched(secondsAgo, make, options);
  await using node = made.node;
  if (again) await chain.lookUp(payment);
  const before = node.ranges().length;
  const finding = await chain.lookUp(payment);
  const ranges = node.ranges().slice(before);
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
const paying = (facts: Facts) => [ended('AuthorizationUsed', facts), transfer(facts)];
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

test('a range that the node refuses is divided, and the next look-up begins with one that it accepts', async () => {
  for (const maxBlocks of [500, 10]) {
    const both = (facts: Facts) => [ended('AuthorizationUsed', facts), transfer(facts)];
    const first = await look(DAY, both, { maxBlocks });
    assert.deepEqual([first.finding, first.lines], [paid, []]);
    const { finding, ranges } = await look(DAY, both, { maxBlocks, again: true });
    assert.deepEqual(finding, paid);
    const refused = ranges.filter((blocks) => blocks > maxBlocks);
    assert.ok(refused.length <= 1, `${refused.length} refused`);
    // The lifetime of an authorization is 450 blocks.
    assert.ok(ranges.length <= 4 + 460 / (maxBlocks / 2), `${ranges.length} ranges of ${maxBlocks}`);
  }
});

for (const refusal of [
  { status: 429 },
  { status: 503 },
  { code: 429 },
  { code: -32007 },
  { code: -32005 },
  { code: -32603 },
])
  test(`a node that refuses all logs for a while, with ${JSON.stringify(refusal)}: then its ranges are large again`, async () => {
    const options: NodeOptions = { refusal };
    const { chain, payment, node } = await searched(DAY, paying, options);
    await using _ = node;
    assert.deepEqual(await chain.lookUp(payment), { outcome: 'unavailable' });
    // viem repeats a failed call once.
    if ('status' in refusal || refusal.code === 429 || refusal.code === -32007)
      assert.ok(node.ranges().length <= 2, `${node.ranges().length} ranges`);
    options.refusal = null;
    const before = node.ranges().length;
    assert.deepEqual(await chain.lookUp(payment), paid);
    const ranges = node.ranges().slice(before);
    assert.ok(ranges.length <= 12, `${ranges.length} ranges`);
  });

test('a short last range that is refused does not make the later ones short', () => {
  const sizes = rangeSizes(LARGEST_RANGE);
  assert.equal(sizes.refused(3), true);
  for (let i = 0; i < 11; i++) sizes.taken(0);
  assert.equal(sizes.size(), LARGEST_RANGE);
});

test('a node that is slow for large ranges: they are divided, and the payment is found in the same look-up', async () => {
  const { chain, payment, node } = await searched(DAY, paying, {});
  await using _ = node;
  const front = await startNodeFront(node.url);
  front.rule(({ method, params: [filter] }) =>
    method === 'eth_getLogs' && blocksOf(filter as Record<string, string>) > 1000 ? 'hang' : 'pass',
  );
  const slow = rpcChain({ rpcUrl: front.url, logger: collectingLogger() });
  assert.deepEqual(await slow.lookUp(payment), paid);
  await front.down();
  assert.deepEqual(await chain.lookUp(payment), paid);
});

test('a node that refuses a single block: unavailable', async () => {
  const { finding, lines } = await look(60, () => [], { maxBlocks: 0 });
  assert.deepEqual(finding, { outcome: 'unavailable' });
  assert.deepEqual(
    lines.map(({ fields }) => fields),
    [{ code: 'rpc_failed' }],
  );
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
  const hidden = await look(60, (facts) => [ended('AuthorizationUsed', facts)], { receipt: [] });
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
  const chain = rpcChain({ rpcUrl: front.url, logger: collectingLogger() });
  assert.deepEqual(await chain.lookUp(payment, { signal: ending }), { outcome: 'unavailable' });
  await front.closed();
  assert.equal(blocks, 5);
  await front.down();
});
