// Discovery by a directory of paid services: the stock tool @agentcash/discovery, as a command.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import process from 'node:process';
import { after, before, describe, test } from 'node:test';
import { ROUTES } from '#src/discovery/routes.ts';
import { type FacilitatorDouble, facilitatorDouble } from '#test/support/chain/facilitator-double.ts';
import { newPayer } from '#test/support/chain/payer.ts';
import { type ChainNode, startChainNode } from '#test/support/chain/scripted-node.ts';
import { runtimeCommand } from '#test/support/process/runtime.ts';
import type { Service } from '#test/support/process/service.ts';
import { makeWorld, type World } from '#test/support/world/service-world.ts';

const TOOL = 'node_modules/@agentcash/discovery/bin/discovery.js';
const PAID = [ROUTES.execute.path, ROUTES.executeGuided.path];

type Found = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

function discovery(...args: readonly string[]): Promise<Found> {
  const [command, given] = runtimeCommand(TOOL, args);
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DENO_DIR: process.env.DENO_DIR,
    NO_COLOR: '1',
  };
  const child = spawn(command, given, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...output }));
  });
}

describe('the discovery tool', () => {
  let world: World;
  let facilitator: FacilitatorDouble;
  let chain: ChainNode;
  let service: Service;
  before(async () => {
    world = await makeWorld();
    facilitator = await facilitatorDouble();
    chain = await startChainNode();
    service = await world.start({
      X402_ENABLED: 'true',
      X402_PAY_TO: newPayer().address,
      X402_FACILITATOR_URL: facilitator.url,
      X402_RPC_URL: chain.url,
    });
  });
  after(async () => {
    await world.end();
    await facilitator.close();
    await chain.down();
  });

  test('discover finds the two paid routes at 0.003 USD by x402, all others free, without warnings', async () => {
    const { code, stdout, stderr } = await discovery('discover', service.url);
    assert.equal(code, 0, stderr);
    const routes = stdout.split('\n').filter((line) => /^ {2}(GET|POST) /.test(line));
    const paid = routes.filter((line) => !line.endsWith('  unprotected'));
    assert.deepEqual(
      paid.map((line) => line.trim().split(/\s{2,}/)).sort(),
      PAID.map((path) => ['POST', path, 'paid', '0.003 USD', '[x402]']).sort(),
    );
    assert.ok(routes.length > 25, stdout);
    assert.match(stdout, /Guidance: \d+ tokens/);
    assert.doesNotMatch(stdout, /Warnings/, stdout);
  });

  for (const path of PAID) {
    test(`check finds ${path} paid, 0.003 USD by x402, with the schemas of its 402, without warnings`, async () => {
      const people = await discovery('check', service.url + path);
      assert.match(people.stdout, /^ {2}POST {5}paid {2}0\.003 USD {2}\[x402\]$/m);
      assert.doesNotMatch(people.stdout, /Warnings/, people.stdout);
      const { stdout } = await discovery('check', service.url + path, '--json');
      const { found, warnings, advisories } = JSON.parse(stdout);
      assert.deepEqual(
        { found, warnings, advisories: advisories.length },
        { found: true, warnings: [], advisories: 1 },
      );
      const [{ method, inputSchema, outputSchema }] = advisories;
      assert.deepEqual([method, inputSchema.type, outputSchema.type], ['POST', 'object', 'object']);
    });
  }

  test('discovery costs nothing: the facilitator has verified and settled nothing', () => {
    assert.deepEqual([facilitator.calls.verify, facilitator.calls.settle], [0, 0]);
  });
});
