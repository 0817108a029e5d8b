// The snippets that pay, against a service in demo mode: they work without payment, as their descriptions state.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { generatePrivateKey } from 'viem/accounts';
import { needsProgram } from '#test/support/chain/requirements.ts';
import { runSnippet, type SnippetRun, snippetFolder } from '#test/support/process/run-snippet.ts';
import { waitFor } from '#test/support/process/service.ts';
import { get, makeWorld, type World } from '#test/support/world/service-world.ts';
import { allOf, readSnippets, type SnippetsDocument, TARGET } from '#test/support/world/snippet-world.ts';

const needs = { skip: [needsProgram('python3'), needsProgram('curl')].some(({ skip }) => skip) };

describe('snippets in demo mode', needs, () => {
  let world: World;
  let folder: string;
  let document: SnippetsDocument;
  before(async () => {
    world = await makeWorld();
    const service = await world.start({ SCHEDULES: 'on' });
    document = await readSnippets(service);
    await waitFor('the read models answer', async () => {
      const { status } = await get(`${service.url}/api/proofs/recent`);
      return status === 200;
    });
    folder = snippetFolder(world.folder);
  });
  after(() => world.end());

  /** With an empty wallet. */
  function run(id: string, key: string = generatePrivateKey()): Promise<SnippetRun> {
    const found = allOf(document).find((one) => one.id === id);
    assert.ok(found, `there is no snippet ${id}`);
    const snippet = { ...found, code: found.code.replaceAll(TARGET, world.target.url(`/${id}`)) };
    return runSnippet(folder, snippet, { env: { BUYER_PRIVATE_KEY: key } });
  }

  for (const id of ['curl-verify', 'python-verify', 'javascript-verify-offline']) {
    test(`${id}: reports that nothing was executed yet`, async () => {
      const { code, stdout, output } = await run(id);
      assert.deepEqual([code, stdout], [1, ''], output);
      assert.match(output, /nothing was executed yet/);
    });
  }

  // Only one snippet of the classic route: all callers are one payer in demo mode, and the snippets use the same key.
  for (const id of ['javascript-execute', 'javascript-guided']) {
    test(`${id}: executes once, pays nothing, and verifies`, async () => {
      const { code, stdout, output } = await run(id);
      assert.equal(code, 0, output);
      assert.match(stdout, /^demo succeeded rcpt_\S+ first time$/m, output);
      assert.match(stdout, /^verified \[/m, output);
      const calls = world.target.requests.filter(({ path }) => path === `/${id}`);
      assert.equal(calls.length, 1, output);
    });
  }

  test('javascript-response: prints what the target answered', async () => {
    const { code, stdout, output } = await run('javascript-response');
    assert.deepEqual([code, /^200 application\/json \{"ok":true\}$/m.test(stdout)], [0, true], output);
  });

  test('javascript-schedule: defines the runs, and pays nothing', async () => {
    const { code, stdout, output } = await run('javascript-schedule');
    assert.equal(code, 0, output);
    assert.equal(stdout.match(/^run [123] due \S+Z$/gm)?.length, 3, output);
  });

  test('without a key nothing is called, and the error names the variable', async () => {
    const had = world.target.requests.length;
    const { code, output } = await run('javascript-execute', '');
    assert.deepEqual([code, /BUYER_PRIVATE_KEY is not set/.test(output)], [1, true], output);
    assert.equal(world.target.requests.length, had);
  });

  test('python-buyer-policy: no payment is required', async () => {
    const { code, stdout, output } = await run('python-buyer-policy');
    assert.deepEqual([code, stdout], [0, 'demo mode: no payment is required\n'], output);
  });

  test('curl-terms: prints nothing, and executes nothing', async () => {
    const { stdout, output } = await run('curl-terms');
    assert.equal(stdout, '', output);
    assert.ok(world.target.requests.every(({ path }) => path !== '/curl-terms'));
  });
});
