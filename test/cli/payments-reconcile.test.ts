// relay payments reconcile: what it needs, what it prints, and how it ends; on a node with a chain that is made up.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { numberToHex, pad } from 'viem';
import { HEAD, startScriptedNode, TRANSFER } from '#test/support/chain/scripted-node.ts';
import { runCli } from '#test/support/process/cli.ts';
import { withLog } from '#test/support/world/service-log.ts';

const ASSET = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const PAYEE = '0x1111111111111111111111111111111111111111';
const SENDER = '0x3333333333333333333333333333333333333333';
const TRANSACTION = `0x${'ab'.repeat(32)}`;

describe('relay payments reconcile', () => {
  const folder = mkdtempSync(join(tmpdir(), 'relay-reconcile-test-'));
  let node: Awaited<ReturnType<typeof startScriptedNode>>;
  let env: Record<string, string>;
  before(async () => {
    node = await startScriptedNode();
    await withLog(folder, async () => undefined);
    env = {
      DATA_DIR: folder,
      X402_ENABLED: 'true',
      X402_PAY_TO: PAYEE,
      X402_FACILITATOR_URL: 'http://127.0.0.1:9',
      X402_RPC_URL: node.url,
    };
  });
  after(async () => {
    await node?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const reconcile = (args: readonly string[] = [], changes: Record<string, string> = {}) =>
    runCli(['payments', 'reconcile', ...args], { env: { ...env, ...changes } });

  test('what it cannot run without is named', async () => {
    for (const [changes, message] of [
      [{ X402_ENABLED: 'false' }, /X402_ENABLED is not true/],
      [{ X402_RPC_URL: 'http://127.0.0.1:9/v2/secret' }, /X402_RPC_URL gives no usable answer/],
    ] as const) {
      const { code, stdout, stderr } = await reconcile([], changes);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /secret/);
    }
    for (const [faults, message] of [
      [{ chainId: 1 }, /serves another chain than X402_NETWORK/],
      [{ safe: 'unknown' }, /no safe block: set X402_CONFIRMATIONS/],
    ] as const) {
      const before = { ...node.faults };
      Object.assign(node.faults, faults);
      const { code, stderr } = await reconcile();
      Object.assign(node.faults, before);
      assert.equal(code, 2);
      assert.match(stderr, message);
    }
    const wrong = await reconcile(['--from', 'latest']);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /must be the number of a block/);
  });

  test('nothing is open: exit 0; a transfer without a payment: exit 3, listed once, and again with --from', async () => {
    const first = await reconcile();
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout, new RegExp(`blocks +${HEAD - 10} to ${HEAD - 10}\n`));
    const again = await reconcile();
    assert.match(again.stdout, new RegExp(`none: block ${HEAD - 10} was compared before`));

    const topics = [TRANSFER, pad(SENDER), pad(PAYEE)] as string[];
    const data = numberToHex(7n, { size: 32 });
    const log = {
      address: ASSET,
      topics,
      data,
      blockNumber: HEAD - 5,
      logIndex: 1,
      transactionHash: TRANSACTION,
    };
    node.logs.push(log);
    node.faults.forgets = new Set([TRANSACTION]);
    const differs = await reconcile([], { X402_CONFIRMATIONS: '0' });
    assert.equal(differs.code, 3, differs.stderr);
    assert.match(
      differs.stdout,
      new RegExp(`differ by 7 units in the blocks ${HEAD - 9} to ${HEAD}: these blocks do not count`),
    );
    node.faults.forgets = new Set();
    const found = await reconcile(['--json'], { X402_CONFIRMATIONS: '0' });
    assert.equal(found.code, 3, found.stderr);
    const unattributed = [
      { transaction: TRANSACTION, sender: SENDER, block: HEAD - 5, amount: '7', transfers: 1 },
    ];
    assert.deepEqual(JSON.parse(found.stdout), {
      network: 'eip155:8453',
      asset: ASSET.toLowerCase(),
      payee: PAYEE,
      fromBlock: HEAD - 9,
      toBlock: HEAD,
      safeBlock: HEAD,
      received: '7',
      transfers: 1,
      settled: [],
      corrected: [],
      missing: [],
      rejected: [],
      unattributed,
      difference: null,
      open: [],
      balanced: true,
    });
    assert.equal((await reconcile([], { X402_CONFIRMATIONS: '0' })).code, 0);
    const repeated = await reconcile(['--from', String(HEAD - 5)], { X402_CONFIRMATIONS: '0' });
    assert.equal(repeated.code, 3);
    assert.match(repeated.stdout, new RegExp(`7 +${HEAD - 5} +${SENDER} +${TRANSACTION}`));
    const { code, stdout } = await runCli(['payments', '--balance', '--json'], { env });
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), [
      {
        network: 'eip155:8453',
        asset: ASSET.toLowerCase(),
        charged: '0',
        served: '0',
        refunded: '0',
        open: '0',
        missing: '0',
        corrected: '0',
        unattributed: '7',
        received: '7',
        upToBlock: HEAD,
        balanced: true,
      },
    ]);
  });

  test('an audit with --rpc compares the rounds with the node', async () => {
    const audited = await runCli(['audit', '--rpc', node.url], { env });
    assert.equal(audited.code, 0, audited.stdout);
    assert.match(audited.stdout, /chain +\d comparisons? and 0 refunds compared with eip155:8453\n/);
    node.logs.pop();
    const other = await runCli(['audit', '--rpc', node.url, '--json'], { env });
    assert.equal(other.code, 1);
    assert.match(other.stdout, /"kind":"chain_transfers_mismatch"/);
    const away = await runCli(['audit', '--rpc', 'http://127.0.0.1:9/v2/secret'], { env });
    assert.equal(away.code, 2);
    assert.match(away.stderr, /the node of --rpc gives no usable answer \(rpc_failed\); the record itself/);
    assert.doesNotMatch(away.stderr, /secret/);
  });
});
