// The search of the chain on a fake node with a long chain and a limit of blocks per request.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Hex, numberToHex, pad } from 'viem';
import { rpcChain } from '#src/adapters/payments/chain.ts';
import { LARGEST_RANGE, rangeSizes } from '#src/adapters/payments/chain-logs.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { iso } from '#src/lib/iso.ts';
import { Cancel } from '#src/lib/time.ts';
import { startNodeFront } from '#test/support/chain/node-front.ts';
import {
  CANCELLED,
  type NodeLog,
  startScriptedNode,
  TRANSFER,
  USED,
} from '#test/support/chain/scripted-node.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';
import { lab, PAY_TO, payloadOf, presented, USDC, v2, wallet } from './lab.ts';

const HEAD = 30_000_000;
const BLOCK_SECONDS = 2;
const TX = `0x${'ab'.repeat(32)}` as Hex;
const OTHER = '0x2222222222222222222222222222222222222222';
const TOPICS = { used: USED, cancelled: CANCELLED };

/** `receipt`: all logs of one transaction. `maxBlocks`: of one request for logs. */
type Options = { readonly receipt?: readonly NodeLog[]; readonly maxBlocks?: number };

/** With a block each two seconds until now. It filters loosely. */
async function longChain(logs: NodeLog[], { maxBlocks = Number.POSITIVE_INFINITY, ...more }: Options = {}) {
  const now = Math.floor(Date.now() / 1000);
  const timeOf = (block: number) => now - (HEAD - block) * BLOCK_SECONDS;
  const node = await startScriptedNode(logs, { head: HEAD, timeOf, ...more });
  Object.assign(node.faults, { maxBlocks, isLoose: 'within the blocks' });
  const askedFor = (method: string) => node.asked.filter((one) => one.method === method);
  return {
    ...node,
    blockAt: (time: number) => HEAD - Math.floor((now - time) / BLOCK_SECONDS),
    spans: () => askedFor('eth_getLogs').map(({ filter }) => blocksOf(filter)),
    count: (method: string) => askedFor(method).length,
  };
}
const blocksOf = (filter: { readonly fromBlock?: string; readonly toBlock?: string } = {}): number =>
  Number(filter.toBlock) - Number(filter.fromBlock) + 1;

/** A payment that expired `secondsAgo`, on a node with the ending logs that `make` returns. */
async function searched(secondsAgo: number, make: (facts: Facts) => readonly NodeLog[], options: Options) {
  const account = wallet();
  const validBefore = Math.floor(Date.now() / 1000) - secondsAgo;
  const payload = await payloadOf(account, { validBefore: String(validBefore) });
  const nonce = payload.authorization.nonce as Hex;
  const node = await longChain([], options);
  node.logs.push(
    ...make({ from: account.address, nonce, block: node.blockAt(validBefore - 30), blockAt: node.blockAt }),
  );
  const logger = collectingLogger();
  const payment = await presented(await lab(), v2(payload));
  return { chain: rpcChain({ rpcUrl: node.url, logger }), payment, node, logger };
}

/** `again`: looked up once more. */
async function look(
  secondsAgo: number,
  make: (facts: Facts) => readonly NodeLog[],
  { again = false, ...options }: Options & { readonly again?: boolean } = {},
) {
  const { chain, payment, logger, ...made } = await searched(secondsAgo, make, options);
  await using node = made.node;
  if (again) await chain.lookUp(payment);
  const before = node.spans().length;
  const finding = await chain.lookUp(payment);
  const ranges = node.spans().slice(before);
  assert.ok(
    ranges.every((blocks) => blocks <= 2000),
    'a range that public nodes refuse',
  );
  return { finding, ranges, blocks: node.count('eth_getBlockByNumber'), lines: logger.lines };
}
type Facts = { from: Hex; nonce: Hex; block: number; blockAt: (time: number) => number };

const log = (block: number, logIndex: number, topics: readonly string[], data = '0x'): NodeLog => ({
  address: USDC,
  topics,
  data,
  blockNumber: block,
  logIndex,
  transactionHash: TX,
});
const ended = (how: keyof typeof TOPICS, { from, nonce, block }: Facts) =>
  log(block, 7, [TOPICS[how], pad(from), nonce]);
const transfer = (
  { from, block }: Facts,
  { to = PAY_TO, value = 3000n, ...rest }: Partial<NodeLog> & { to?: Hex; value?: bigint } = {},
): NodeLog => ({
  ...log(block, 8, [TRANSFER, pad(from), pad(to)], numberToHex(value, { size: 32 })),
  ...rest,
});
const paying = (facts: Facts) => [ended('used', facts), transfer(facts)];
const paid = { outcome: 'paid', transaction: TX };
const DAY = 86_400;

test('a payment of the last minutes is found with few requests', async () => {
  const { finding, ranges, blocks } = await look(60, paying);
  assert.deepEqual(finding, paid);
  assert.equal(ranges.length, 1);
  assert.ok(blocks <= 4, `${blocks} blocks asked for`);
});

test('an old payment is found by a search from its own time', async () => {
  for (const age of [DAY, 30 * DAY, 600 * DAY]) {
    const { finding, ranges, blocks } = await look(age, paying);
    assert.deepEqual(finding, paid);
    assert.ok(ranges.length <= 2, `${ranges.length} ranges`);
    assert.ok(blocks <= 40, `${blocks} blocks asked for`);
  }
});

test('a cancellation a day after the expiry is found', async () => {
  const late = await look(2 * DAY, (facts) => [
    ended('cancelled', { ...facts, block: facts.block + DAY / BLOCK_SECONDS }),
  ]);
  assert.deepEqual(late.finding, { outcome: 'cancelled' });
});

test('the payment of a run, which lives until its catch-up has ended, is searched from its settlement on', async () => {
  const lifetime = SCHEDULE_LIMITS.catchUpSeconds.max + RUN_TIMES.authorizationMarginSeconds;
  // As the run began, not as its payment was taken days before.
  for (const reservedBefore of [lifetime, 30 * DAY]) {
    const { chain, payment, node } = await searched(
      3 * DAY,
      ({ block, ...facts }) => paying({ ...facts, block: block - (lifetime - 60) / BLOCK_SECONDS }),
      {},
    );
    await using _ = node;
    const reservedAt = iso((Number(payment.validBefore) - reservedBefore) * 1000);
    assert.deepEqual(await chain.lookUp({ ...payment, reservedAt }), paid);
    assert.ok(node.spans().length <= 3, `${node.spans().length} ranges`);
  }
});

test('a range that the node refuses is divided, and the next look-up begins with one that it accepts', async () => {
  for (const maxBlocks of [500, 10]) {
    const first = await look(DAY, paying, { maxBlocks });
    assert.deepEqual([first.finding, first.lines], [paid, []]);
    const { finding, ranges } = await look(DAY, paying, { maxBlocks, again: true });
    assert.deepEqual(finding, paid);
    const refused = ranges.filter((blocks) => blocks > maxBlocks);
    assert.ok(refused.length <= 1, `${refused.length} refused`);
    // The lifetime of an authorization is 450 blocks.
    assert.ok(ranges.length <= 4 + 460 / (maxBlocks / 2), `${ranges.length} ranges of ${maxBlocks}`);
  }
});

for (const refusal of [429, 503, -32007, -32603, 'code 429'] as const)
  test(`a node that refuses all logs for a while, with ${refusal}: then its ranges are large again`, async () => {
    const { chain, payment, node } = await searched(DAY, paying, {});
    await using _ = node;
    const code = refusal === 'code 429' ? 429 : refusal;
    const refused = { code, message: 'refused' };
    const isStatus = refusal === 429 || refusal === 503;
    if (isStatus) Object.assign(node.faults, { limitedFrom: 0, limitedWith: code });
    else node.faults.fails = new Map([['eth_getLogs', refused]]);
    assert.deepEqual(await chain.lookUp(payment), { outcome: 'unavailable' });
    // viem repeats a failed call once.
    if (code === 429 || code === -32007) assert.ok(node.spans().length <= 2, `${node.spans().length} ranges`);
    Object.assign(node.faults, { limitedFrom: Number.POSITIVE_INFINITY, fails: new Map() });
    const before = node.spans().length;
    assert.deepEqual(await chain.lookUp(payment), paid);
    const ranges = node.spans().slice(before);
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
    [{ code: 'rpc_failed', condition: 'no_answer' }],
  );
});

test('a log that is not found within the limit of ranges is unavailable', async () => {
  const never = await look(20 * DAY, () => []);
  assert.deepEqual(never.finding, { outcome: 'unavailable' });
  assert.equal(never.ranges.length, 60);
});

test('a log of a removed block is ignored', async () => {
  const { finding } = await look(60, (facts) => [
    { ...ended('used', facts), removed: true },
    transfer(facts),
  ]);
  assert.deepEqual(finding, { outcome: 'unavailable' });
});

test('spent elsewhere: the payer’s transfer right after the use has another recipient or amount', async () => {
  const others: ((facts: Facts) => readonly NodeLog[])[] = [
    (facts) => [transfer(facts, { to: OTHER })],
    (facts) => [transfer(facts, { value: 2999n })],
    (facts) => [transfer(facts, { to: OTHER }), transfer(facts, { logIndex: 9 })],
  ];
  for (const more of others) {
    const { finding } = await look(60, (facts) => [ended('used', facts), ...more(facts)]);
    assert.deepEqual(finding, { outcome: 'spent_elsewhere' });
  }
});

test('a use without the payer’s transfer right after it is unavailable: other tokens may order their logs otherwise', async () => {
  const others: ((facts: Facts) => readonly NodeLog[])[] = [
    () => [],
    (facts) => [transfer(facts, { address: OTHER })],
    (facts) => [transfer({ ...facts, from: OTHER })],
    (facts) => [ended('used', { ...facts, nonce: TX }), transfer(facts)],
    (facts) => [{ ...transfer(facts), data: '0x' }],
  ];
  for (const more of others) {
    const { finding, lines } = await look(60, (facts) => [ended('used', facts), ...more(facts)]);
    assert.deepEqual(finding, { outcome: 'unavailable' });
    assert.deepEqual(
      lines.map(({ fields }) => fields),
      [{ code: 'transfer_not_found', condition: 'no_answer' }],
    );
  }
  const before = await look(60, (facts) => [transfer(facts), ended('used', facts)]);
  assert.deepEqual(before.finding, { outcome: 'unavailable' });
});

test('logs of a node that filters loosely, or a transaction without the use, are not a result', async () => {
  const others: ((facts: Facts) => readonly NodeLog[])[] = [
    (facts) => [ended('used', { ...facts, nonce: TX }), transfer(facts)],
    (facts) => [ended('cancelled', { ...facts, from: OTHER })],
    (facts) => [{ ...ended('cancelled', facts), address: OTHER }],
    (facts) => [transfer(facts)],
  ];
  for (const make of others) {
    assert.deepEqual((await look(60, make)).finding, { outcome: 'unavailable' });
  }
  const hidden = await look(60, (facts) => [ended('used', facts)], { receipt: [] });
  assert.deepEqual(hidden.finding, { outcome: 'unavailable' });
  assert.deepEqual(
    hidden.lines.map(({ fields }) => fields),
    [{ code: 'transfer_not_found', condition: 'no_answer' }],
  );
});

test('the search for the first block ends with its caller', async () => {
  await using node = await longChain([]);
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
