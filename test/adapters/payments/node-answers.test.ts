// Real answers of nodes and of hosted providers: what each one means. The same code has opposite meanings in different
// clients, so each row goes through the adapter that has to understand it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAsset } from '#src/adapters/payments/asset.ts';
import { chainScan } from '#src/adapters/payments/chain-scan.ts';
import { queryNode } from '#src/adapters/payments/node.ts';
import { UnusableTerms } from '#src/adapters/payments/requirements.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { ChainUnavailable } from '#src/ports/chain-scan.ts';
import {
  HEAD,
  type RpcFailure,
  startChainNode,
  startScriptedNode,
  USDC_TOKEN,
} from '#test/support/chain/scripted-node.ts';
import { PAY_TO, USDC } from './lab.ts';

/** `who`: client or provider, with the version where it was seen. Without `code`: the body is no JSON-RPC. */
type Row = readonly [who: string, answer: RpcFailure];
const rpc = (
  code: number,
  message: string,
  more: { readonly data?: string; readonly status?: number } = {},
) => ({
  code,
  message,
  ...more,
});

/** A call of a function that the contract does not have. */
const REVERTS: readonly Row[] = [
  ['anvil 1.7.1, reth, geth since 2025', rpc(3, 'execution reverted', { data: '0x' })],
  ['geth 1.13, op-geth, bor, coreth', rpc(-32000, 'execution reverted')],
  ['erigon 2', rpc(-32000, 'execution reverted', { data: '0x' })],
  ['besu 23', rpc(-32000, 'Execution reverted', { data: '0x' })],
  ['nethermind 1.25', rpc(-32015, 'VM execution error.', { data: 'Reverted 0x' })],
  ['openethereum 3.3', rpc(-32015, 'VM execution error.', { data: 'Bad instruction fe' })],
  ['ganache 7.9.2', rpc(-32000, 'VM Exception while processing transaction: revert', { data: '0x' })],
  ['geth 1.9: a proxy without the function', rpc(-32000, 'invalid opcode: INVALID')],
  ['geth: code that ends', rpc(-32000, 'stack underflow (0 <=> 1)')],
  ['rskj 6', rpc(-32015, 'transaction reverted')],
  ['klaytn', rpc(-32000, 'evm: execution reverted')],
  ['hardhat 3.18.0', rpc(3, 'Transaction reverted without a reason string', { data: '0x' })],
  [
    'hardhat 2.22',
    rpc(
      -32603,
      "Error: Transaction reverted: function selector was not recognized and there's no fallback function",
    ),
  ],
  ['frontier (moonbeam)', rpc(-32603, 'VM Exception while processing transaction: revert')],
  ['a gateway that answers 400 with it', rpc(-32000, 'execution reverted', { status: 400 })],
];

for (const [who, answer] of REVERTS) {
  test(`a revert in the words of ${who}: an optional function is not there, a required one refuses the asset`, async () => {
    await using node = await startChainNode();
    node.faults.reverts = answer;
    const asset = {
      chainId: 8453,
      address: USDC.toLowerCase() as `0x${string}`,
      spelling: USDC,
      known: null,
    };
    const read = () => queryNode(node.url, { ms: 5000 }, (client) => readAsset(client, asset));
    assert.deepEqual(await read(), { decimals: 6, domain: { name: 'USD Coin', version: '2' } });
    node.faults.token = { ...USDC_TOKEN, takesAuthorizations: false };
    await assert.rejects(read(), (error) => error instanceof UnusableTerms && error.setting === 'asset');
  });
}

/** An answer that means nothing about what was asked. */
const OUTAGES: readonly Row[] = [
  ['alchemy', rpc(429, 'Your app has exceeded its compute units per second capacity.')],
  ['infura, status 429', rpc(-32005, 'daily request count exceeded, request rate limited', { status: 429 })],
  ['infura, status 429', rpc(-32005, 'project ID request rate exceeded', { status: 429 })],
  [
    'quicknode',
    rpc(-32007, '50/second request limit reached - reduce calls per second or upgrade your account'),
  ],
  ['quicknode', rpc(-32012, 'credits limited to 6000/sec')],
  ['proxyd (mainnet.base.org)', rpc(-32016, 'over rate limit', { status: 429 })],
  [
    'proxyd (mainnet.base.org)',
    rpc(-32011, 'no backend is currently healthy to serve traffic', { status: 503 }),
  ],
  ['proxyd: Nethermind’s code of a revert', rpc(-32015, 'gateway timeout', { status: 504 })],
  ['ankr', rpc(-32000, 'Unauthorized: You must authenticate your request with an API key.', { status: 403 })],
  ['geth', rpc(-32000, 'header not found')],
  ['ganache 7.9.2', rpc(-32700, 'header not found')],
  ['anvil 1.7.1', rpc(-32602, 'BlockOutOfRangeError: block height is 0 but requested was 65535')],
  ['hardhat 3.18.0', rpc(-32000, 'Received invalid block tag 65535. Latest block number is 0')],
  ['a proxy', { status: 429 }],
  ['a proxy', { status: 502 }],
  ['a proxy', { status: 503 }],
];

for (const [who, answer] of OUTAGES) {
  const what = 'message' in answer ? answer.message : `status ${answer.status} without JSON`;
  test(`an outage, of ${who}: ${what}`, async () => {
    await using double = await startChainNode();
    double.faults.reverts = answer;
    const asset = {
      chainId: 8453,
      address: USDC.toLowerCase() as `0x${string}`,
      spelling: USDC,
      known: null,
    };
    const read = () => queryNode(double.url, { ms: 5000 }, (client) => readAsset(client, asset));
    await assert.rejects(read(), { code: 'rpc_failed' });
    await using node = await startScriptedNode();
    node.faults.fails = new Map([['eth_getBlockByNumber', answer]]);
    const { scan, ...chain } = scanOf(node.url);
    await assert.rejects(chain.safeBlock(), unavailable('rpc_failed'), 'not a missing tag');
  });
}

for (const [who, answer] of [
  ['geth before the first finality', rpc(-32000, 'safe block not found')],
  ['geth 1.10', rpc(-32602, 'invalid argument 0: hex string without 0x prefix')],
  ['erigon 2', rpc(-39001, 'Unknown block')],
  ['nethermind', rpc(-32602, 'Invalid block parameter: unknown tag safe')],
  ['a node of the scripted kind', rpc(-32602, 'invalid block tag')],
] as const satisfies readonly Row[]) {
  test(`no block is final, of ${who}: ${answer.message}`, async () => {
    await using node = await startScriptedNode();
    node.faults.fails = new Map([['eth_getBlockByNumber', answer]]);
    await assert.rejects(scanOf(node.url).safeBlock(), unavailable('no_safe_block'));
  });
}

const SHOULD_WORK = 'Based on your parameters, this block range should work: [0x123c9b2, 0x123cba5]';
const RESPONSE_SIZE =
  'Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response.';

/** A range of blocks that a smaller one may remedy. */
const RANGES: readonly Row[] = [
  [
    'alchemy, free tier',
    rpc(
      -32600,
      `Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. ${SHOULD_WORK}`,
      { status: 400 },
    ),
  ],
  ['alchemy', rpc(-32600, `You can make eth_getLogs requests with up to a 500 block range. ${SHOULD_WORK}`)],
  ['alchemy', rpc(-32602, RESPONSE_SIZE)],
  [
    'infura',
    rpc(-32005, 'query returned more than 10000 results. Try with this block range [0xBDE5F8, 0x102DBCC].'),
  ],
  ['infura', rpc(-32602, 'range 1000000 exceeds limit of 10000')],
  ['quicknode', rpc(-32614, 'eth_getLogs is limited to a 10,000 range', { status: 413 })],
  [
    'quicknode',
    rpc(-32602, 'eth_getLogs and eth_newFilter are limited to a 10,000 blocks range', { status: 413 }),
  ],
  ['ankr', rpc(-32600, 'block range is too wide')],
  ['ankr', rpc(-32062, 'Block range is too large')],
  ['publicnode', rpc(-32701, 'exceed maximum block range: 50000')],
  ['publicnode of Base', rpc(-32602, 'Archive requests require a personal token')],
  ['drpc', rpc(35, 'ranges over 10000 blocks are not supported on freetier', { status: 400 })],
  [
    'drpc',
    rpc(30, 'Request timeout on the free tier, please upgrade your tier to the paid one', { status: 408 }),
  ],
  ['proxyd (mainnet.base.org)', rpc(-32614, 'eth_getLogs is limited to a 2,000 range')],
  ['proxyd', rpc(-32020, 'backend response too large', { status: 500 })],
  ['reth', rpc(-32602, 'query exceeds max block range 100000')],
  ['erigon, linkpool', rpc(-32000, 'too wide blocks range, the limit is 100')],
  ['blockdaemon, chainstack', rpc(-32002, 'request timed out')],
  ['nodies', rpc(-32001, 'Block range too large: maximum allowed is 20000 blocks')],
  ['a proxy', { status: 408 }],
  ['a proxy', { status: 413 }],
  ['a proxy', { status: 500 }],
  ['a proxy', { status: 502 }],
  ['varnish: 503 Backend fetch failed', { status: 503 }],
  ['a proxy', { status: 504 }],
];

for (const [who, answer] of RANGES) {
  const what = 'message' in answer ? answer.message : `status ${answer.status} without JSON`;
  test(`a range is divided, of ${who}: ${what}`, async () => {
    await using node = await startScriptedNode();
    node.faults.maxBlocks = 10;
    node.faults.tooLarge = answer;
    const { to } = await scanOf(node.url).scan(request(HEAD - 39, HEAD));
    assert.equal(to, HEAD);
  });
}

test('a limit of the rate does not divide a range: more requests would be refused, too', async () => {
  for (const [who, answer] of OUTAGES.slice(0, 7)) {
    await using node = await startScriptedNode();
    node.faults.fails = new Map([['eth_getLogs', answer]]);
    await assert.rejects(scanOf(node.url).scan(request(1, 1000)), unavailable('rpc_failed'), who);
    const logs = node.asked.filter(({ method }) => method === 'eth_getLogs');
    assert.equal(new Set(logs.map(({ filter }) => filter?.toBlock)).size, 1, who);
  }
});

/** A state that the node no longer has. */
const OLD_STATES: readonly Row[] = [
  ['geth, hash scheme', rpc(-32000, 'missing trie node 1f (path ) state 0x1f is not available')],
  ['geth 1.16, path scheme', rpc(-32000, 'historical state 0x1f is not available')],
  ['erigon 3', rpc(-32000, 'old data not available due to pruning')],
  ['nethermind', rpc(-32002, 'No state available for block 0x1f')],
  ['besu', rpc(-32000, 'World state unavailable')],
  ['reth', rpc(-32603, 'state at block #60 is pruned')],
  ['publicnode', rpc(-32701, 'Archive requests require a personal token')],
];

for (const [who, answer] of OLD_STATES)
  test(`a node that keeps no state that old is no outage, in the words of ${who}`, async () => {
    await using node = await startScriptedNode();
    node.faults.fails = new Map([['eth_call', answer]]);
    assert.deepEqual(await scanOf(node.url).balanceOf(PAY_TO, 60), { kind: 'state_gone' });
  });

const scanOf = (rpcUrl: string) =>
  chainScan({
    rpcUrl,
    network: 'eip155:8453',
    asset: USDC.toLowerCase(),
    confirmations: null,
    clock: systemClock(),
  });
const request = (from: number, to: number) => ({ payee: PAY_TO, from, to, maxTransfers: 1000, payers: [] });
const unavailable = (code: string) => (error: unknown) =>
  error instanceof ChainUnavailable && error.code === code;
