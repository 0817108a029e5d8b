// The verifier that a running service publishes, used as its reader would: downloaded, then run on saved files.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromiumPath, needsCryptography, requirement } from '#test/support/chain/requirements.ts';
import { startBrowser } from '#test/support/process/browser.ts';
import { runCli } from '#test/support/process/cli.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { type Executed, execute, makeWorld, type World } from '#test/support/world/service-world.ts';

const needs = needsCryptography();
const needsBrowser = requirement('Chromium', chromiumPath() !== null, 'no chromium on PATH');

describe('the published verifier', () => {
  let world: World;
  let service: Service;
  let executed: Executed;
  let folder: string;

  const text = async (path: string): Promise<string> => {
    const answer = await fetch(`${service.url}${path}`);
    assert.equal(answer.status, 200, path);
    return answer.text();
  };
  const sizeOf = (note: string) => Number(note.split('\n')[1]);
  const save = async (name: string, path: string): Promise<void> =>
    writeFileSync(join(folder, name), await text(path));
  const call = async (idempotencyKey: string) =>
    (await execute(service, { url: world.target.url('/hook'), body: { n: 1 }, idempotencyKey })).body;

  before(async () => {
    world = await makeWorld();
    service = await world.start();
    folder = join(world.folder, 'reader');
    mkdirSync(folder);
    executed = await call('first');
    writeFileSync(join(folder, 'execution.json'), JSON.stringify(executed));
    const logged = async () => (await fetch(`${service.url}/log/proof/${executed.receipt.id}`)).ok;
    await waitFor('the receipt in the log', logged);
    await save('old.checkpoint', '/log/checkpoint');
    await save('receipt.json', `/api/receipts/${executed.receipt.id}`);
    await save('receipt.tlog-proof', `/log/proof/${executed.receipt.id}`);
    await save('jwks.json', '/.well-known/jwks.json');
    const older = await text('/log/checkpoint');
    await call('second');
    await waitFor('a larger checkpoint', async () => sizeOf(await text('/log/checkpoint')) > sizeOf(older));
    const newer = await text('/log/checkpoint');
    writeFileSync(join(folder, 'new.checkpoint'), newer);
    await save('consistency.json', `/log/consistency?from=${sizeOf(older)}&to=${sizeOf(newer)}`);
  });
  after(() => world.end());

  test('one file of Python verifies receipt, inclusion, disclosures and consistency', needs, async () => {
    await save('verify.py', '/verifier/verify.py');
    const python = (...args: readonly string[]) =>
      spawnSync('python3', ['verify.py', ...args, '--keys', 'jwks.json'], { cwd: folder, encoding: 'utf8' });
    const proof = ['--proof', 'receipt.tlog-proof'];
    for (const receipt of ['receipt.json', 'execution.json']) {
      const { status, stdout, stderr } = python('receipt', receipt, ...proof, '--disclose', 'execution.json');
      assert.deepEqual([status, stderr], [0, ''], stdout);
      assert.match(stdout, /^ok {3}receipt_logged$/m);
      assert.ok(stdout.includes(`disclosure target_url: "${world.target.url('/hook')}"`), stdout);
    }
    const log = ['consistency', 'old.checkpoint', 'new.checkpoint', '--proof', 'consistency.json'];
    assert.equal(python(...log).status, 0);
    assert.equal(python('consistency', 'new.checkpoint', 'old.checkpoint').status, 1);
  });

  test('relay consistency agrees: against the service, and with the saved files', async () => {
    const at = (name: string) => join(folder, name);
    const keys = ['--keys', at('jwks.json')];
    const live = await runCli(['consistency', at('execution.json'), service.url, ...keys]);
    assert.deepEqual([live.code, live.stderr], [0, ''], live.stdout);
    const files = [at('old.checkpoint'), at('new.checkpoint'), '--proof', at('consistency.json')];
    assert.equal((await runCli(['consistency', ...files, ...keys])).code, 0);
  });

  test('a page of another origin imports the module and verifies with it', needsBrowser, async () => {
    await using page = await loopbackServer((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>reader</title>'),
    );
    const browser = await startBrowser();
    try {
      const window = await browser.open(page.url);
      const files = {
        receipt: await text(`/api/receipts/${executed.receipt.id}`),
        keys: await text('/.well-known/jwks.json'),
        proof: await text(`/log/proof/${executed.receipt.id}`),
        older: await text('/log/checkpoint'),
      };
      const script = `(async ({ receipt, keys, proof, older }) => {
        const { verifyCheckpoint, verifyReceipt } = await import('${service.url}/verifier/verify.js');
        const good = await verifyReceipt(receipt, { keys, proof });
        const bad = await verifyReceipt(receipt, { keys, proof: proof.replace(/index \\d+/, 'index 0') });
        return [good.ok, bad.ok, (await verifyCheckpoint(older, { keys })).ok];
      })(${JSON.stringify(files)})`;
      assert.deepEqual(await window.page.evaluate(script), [true, false, true]);
      assert.deepEqual(window.heard.said, []);
    } finally {
      await browser.close();
    }
  });
});
