// Static properties of every snippet; test/journeys runs them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { mcpTools, serverInstructions } from '#src/discovery/documents/mcp.ts';
import { type Snippet, snippet, snippetGroups } from '#src/discovery/documents/snippets.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES, SCHEDULE_ROUTES } from '#src/discovery/routes.ts';
import { documentFacts } from '#src/http/routes/documents.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { BASE, fakeWorld } from '#test/support/world/http-deps.ts';

const PAY_TO = '0x2222222222222222222222222222222222222222';
const ASSET = '0x3333333333333333333333333333333333333333';

const demo: Facts = documentFacts(fakeWorld());
const asked = {
  resource: `${BASE}/api/execute/webhook`,
  accepts: [{ scheme: 'exact', network: 'eip155:8453', asset: ASSET, payTo: PAY_TO, amount: '3000' }],
  extensions: {},
};
const charged: Facts = {
  ...demo,
  mode: 'x402',
  askedFor: { 'execute/webhook': asked, 'execute/guided-webhook': asked },
};

const scheduled: Facts = { ...charged, schedules: { horizonDays: 30 } };

const all = (facts: Facts): readonly Snippet[] => snippetGroups(facts).flatMap(({ snippets }) => snippets);
const pays = ({ code }: Snippet) => code.includes('BUYER_PRIVATE_KEY');

test('snippets: the groups of the specification, in its order, none empty', () => {
  const groups = snippetGroups(charged);
  assert.deepEqual(
    groups.map(({ id }) => id),
    ['discovery', 'paid-call', 'decision-first', 'verification', 'advanced-surfaces', 'buyer-policy'],
  );
  for (const { id, snippets } of groups) assert.ok(snippets.length > 0, id);
});

test('snippets: ids are unique, and an unknown id throws', () => {
  const ids = all(charged).map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.equal(snippet(charged, id).id, id);
  assert.throws(() => snippet(charged, 'nothing'), /there is no snippet nothing/);
});

test('snippets: one buys a schedule, and the tools of schedules are counted, where schedules are on', () => {
  const tools = (facts: Facts) => /: (\d+) tools/.exec(snippet(facts, 'mcp-config').description)?.[1];
  const added = all(scheduled).filter(({ id }) => !all(charged).some((one) => one.id === id));
  assert.deepEqual(
    added.map(({ id }) => id),
    ['javascript-schedule'],
  );
  for (const facts of [charged, scheduled]) assert.equal(Number(tools(facts)), mcpTools(facts).length);
  assert.deepEqual([mcpTools(charged).length, mcpTools(scheduled).length], [8, 11]);
  assert.throws(() => snippet(charged, 'javascript-schedule'), /there is no snippet/);
  const paid = (facts: Facts) => /\n(.*): Costs/.exec(serverInstructions(facts))?.[1];
  assert.equal(paid(charged), 'execute_webhook and execute_guided_webhook');
  assert.equal(
    paid(scheduled),
    'execute_webhook, execute_guided_webhook, create_schedule and fund_schedule_run',
  );
});

test('snippets: one asks for what the target answers, where the relay returns it', () => {
  const { code } = snippet(charged, 'javascript-response');
  assert.match(code, /Prefer: return=representation/);
  assert.throws(
    () => snippet({ ...charged, returnsResponses: false }, 'javascript-response'),
    /there is no snippet/,
  );
});

test('snippets: every address in them is the deployment’s own or of example.com', () => {
  for (const { id, code } of all({ ...scheduled, baseUrl: BASE })) {
    const addresses = code.match(/https?:\/\/[^\s'")]+/g) ?? [];
    for (const address of addresses) {
      const { origin } = new URL(address);
      assert.ok([BASE, 'https://example.com'].includes(origin), `${id}: ${address}`);
    }
    assert.ok(addresses.length > 0 || code.includes(BASE), id);
  }
});

test('snippets: every address of the service in them is one of the route table', () => {
  // The address alone is the relay's origin.
  const paths = [
    '',
    ...Object.values({ ...ROUTES, ...SCHEDULE_ROUTES }).map(({ path }) => path.replace(/:\w+$/, '')),
  ];
  const unknown = all({ ...scheduled, baseUrl: BASE }).flatMap(({ id, code }) =>
    [...code.matchAll(/https:\/\/relay\.example([^\s'"$)]*)/g)]
      .filter(([, path = '']) => !paths.some((known) => known === path))
      .map(([address]) => `${id}: ${address}`),
  );
  assert.deepEqual(unknown, []);
});

test('snippets: those that pay read the key from the environment and describe both modes', () => {
  for (const facts of [demo, scheduled]) {
    const paying = all(facts).filter(pays);
    assert.ok(paying.length >= 3, String(paying.length));
    for (const { id, code, description } of paying) {
      assert.match(description, /demo mode.*without payment/, id);
      assert.ok(description.includes('$0.003'), id);
      assert.doesNotMatch(code, /0x[0-9a-fA-F]{64}/, id);
      assert.match(code, /throw new Error\('BUYER_PRIVATE_KEY is not set/, id);
    }
  }
});

test('snippets: javascript-execute names what a second run is', () => {
  const { code } = snippet(charged, 'javascript-execute');
  assert.match(code, /second run with this key is a replay[^\n]*\n\s+idempotencyKey: /);
});

test('snippets: two compare a 402 with the terms of this deployment before they pay', () => {
  for (const id of ['python-buyer-policy', 'javascript-execute']) {
    const { code } = snippet(charged, id);
    for (const term of [
      PAY_TO,
      'eip155:8453',
      ...(id === 'javascript-execute' ? ['0.003', BASE] : [ASSET, '3000', asked.resource]),
    ])
      assert.ok(code.includes(term), `${id}: ${term}`);
  }
});

test('snippets: the document fits its schema and states whether payment is enforced', async () => {
  const { status, body } = await clientOf(fakeWorld()).get('/api/snippets');
  assert.equal(status, 200);
  const { purpose, payment, groups } = body as { purpose: string; payment: unknown; groups: unknown };
  assert.match(
    purpose,
    /example\.com\/hook with your own target first: a call that the target fails is charged, too/,
  );
  assert.doesNotMatch(purpose, /unchanged/);
  assert.deepEqual(payment, {
    required: false,
    route: '/api/execute/webhook',
    price: '$0.003',
    network: 'eip155:8453',
    networkName: 'Base',
    scheme: 'exact',
  });
  assert.deepEqual(groups, snippetGroups(demo));
});

test('snippets: those in JavaScript are modules that state how they are run', () => {
  const parent = mkdtempSync(join(tmpdir(), 'relay-snippets-'));
  const scripts = all(charged).filter(({ language }) => language === 'javascript');
  assert.ok(scripts.length >= 6);
  for (const { id, code } of scripts) {
    // A function for a server of one's own needs no package.
    if (id !== 'javascript-verify-webhook')
      assert.match(code, new RegExp(`^// Run: .*node ${id}\\.mjs`, 'm'), id);
    writeFileSync(join(parent, `${id}.mjs`), code);
    const built = spawnSync(
      join(rootPath, 'node_modules/bun/bin/bun.exe'),
      ['build', '--no-bundle', `${id}.mjs`],
      {
        cwd: parent,
        encoding: 'utf8',
      },
    );
    assert.equal(built.status, 0, built.stderr);
  }
  rmSync(parent, { recursive: true });
});

test('snippets: those in Python and shell state how they are run', () => {
  const scripts = all(charged).filter(({ language }) => language === 'python' || language === 'shell');
  // The one is published as verify.py, the other is a function for a server of one's own.
  const others = ['python-verify-offline', 'python-verify-webhook'];
  const named = scripts.filter(({ id }) => !others.includes(id));
  assert.ok(named.length >= 12);
  for (const { id, code, language } of named)
    assert.match(
      code,
      new RegExp(language === 'python' ? `^# Run: .*python3 ${id}\\.py` : `^# Run: .*sh ${id}\\.sh`, 'm'),
      id,
    );
});
