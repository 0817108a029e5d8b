// Every snippet of the document, as served, run as a reader would: against the running service, paid on a local chain. Only
// the target's address is changed.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { needsCryptography, needsNode, needsProgram } from '#test/support/chain/requirements.ts';
import { type FrontRule, startRelayFront } from '#test/support/process/relay-front.ts';
import { get, type Report } from '#test/support/world/service-world.ts';
import { allOf, PRICE, receiptIn, snippetWorld } from '#test/support/world/snippet-world.ts';

const needs = {
  skip: [needsAnvil(), needsProgram('python3'), needsCryptography(), needsProgram('curl')].some(
    ({ skip }) => skip,
  ),
};

const needsNode20 = needsNode(20);

const BODY = { event: 'order.paid', order: 17 };

describe('snippets', needs, () => {
  const it = snippetWorld();

  for (const id of ['javascript-execute', 'javascript-guided', 'mcp-execute']) {
    test(`${id}: pays once, executes once, and verifies`, async () => {
      const [had, path, { env, spent }] = [await it.received(), `/paid-${id}`, await it.wallet()];
      const run = await it.run(it.snippet(id, path), { env });
      assert.equal(run.code, 0, run.output);
      assert.match(run.stdout, /^x402 succeeded rcpt_/m, run.output);
      assert.match(run.stdout, /^verified \[/m, run.output);
      const { body } = await get<Report>(`${it.service.url}/api/verify/receipts/${receiptIn(run)}`);
      assert.deepEqual([body.ok, body.signatureVerified], [true, true], JSON.stringify(body));
      const arrived = it.calls(path).map((call) => [call.method, JSON.parse(call.body.toString())]);
      assert.deepEqual(arrived, [['POST', BODY]], run.output);
      assert.deepEqual([await spent(), (await it.received()) - had], [PRICE, PRICE], run.output);
    });
  }

  test('javascript-execute: run again, it replays and pays nothing more', async () => {
    const { env, spent } = await it.wallet();
    const snippet = it.snippet('javascript-execute', '/replayed');
    const first = await it.run(snippet, { env });
    const again = await it.run(snippet, { env });
    assert.match(first.stdout, / first time$/m, first.output);
    assert.match(again.stdout, / replay$/m, again.output);
    assert.equal(receiptIn(again), receiptIn(first));
    assert.deepEqual([it.calls('/replayed').length, await spent()], [1, PRICE]);
  });

  test('javascript-response: prints what the target answered, once; a replay has none', async () => {
    const { env, spent } = await it.wallet();
    const snippet = it.snippet('javascript-response', '/answered');
    it.paid.target.answer(() => ({
      status: 201,
      headers: { 'content-type': 'text/plain' },
      body: 'order 17 ✓',
    }));
    const first = await it.run(snippet, { env, args: ['17'] });
    it.paid.target.answer(() => ({}));
    const again = await it.run(snippet, { env, args: ['17'] });
    assert.deepEqual(
      [first.code, /^201 text\/plain order 17 ✓$/m.test(first.stdout)],
      [0, true],
      first.output,
    );
    for (const line of [/ replay$/m, /^no answer of the target$/m])
      assert.match(again.stdout, line, again.output);
    assert.deepEqual([receiptIn(again), again.code], [receiptIn(first), 0], again.output);
    assert.deepEqual([it.calls('/answered').length, await spent()], [1, PRICE]);
  });

  test('javascript-execute and javascript-verify-offline: with Node 20', needsNode20, async () => {
    const { env, spent } = await it.wallet();
    const bought = await it.run(it.snippet('javascript-execute', '/node'), { env, node: true });
    assert.deepEqual([bought.code, await spent()], [0, PRICE], bought.output);
    const args = [receiptIn(bought)];
    const verified = await it.run(it.snippet('javascript-verify-offline', ''), { args, node: true });
    assert.equal(verified.code, 0, verified.output);
  });

  for (const node of [true, undefined])
    test(`javascript-schedule: buys three runs, and pays nothing before they are due${node ? ' (Node 20)' : ''}`, {
      ...(node ? needsNode20 : {}),
    }, async () => {
      const { env, spent } = await it.wallet();
      const run = await it.run(it.snippet('javascript-schedule', '/scheduled'), {
        env,
        ...(node && { node }),
      });
      assert.equal(run.code, 0, run.output);
      const [, address = '', token] = /^(http\S+) (\S{43})$/m.exec(run.stdout) ?? [];
      const { body } = await get<{ fundedRuns: number; runs: { dueAt: string; state: string }[] }>(address);
      const bought = body.runs.filter(({ state }) => state === 'funded').map(({ dueAt }) => dueAt);
      const said = [...run.stdout.matchAll(/^run \d due (\S+)$/gm)].map(([, due]) => due);
      assert.deepEqual([bought.length, said], [3, bought], run.output);
      const cancelled = await fetch(address, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${token}` },
      });
      assert.deepEqual([cancelled.status, await spent()], [200, 0n]);
    });

  test('python-verify-offline: verifies a receipt of this service from saved files', async () => {
    const bought = await it.run(it.snippet('javascript-execute', '/saved'), await it.wallet());
    const save = async (name: string, path: string) => {
      const file = join(it.paid.folder, name);
      writeFileSync(file, await (await fetch(`${it.service.url}${path}`)).text());
      return file;
    };
    const receipt = await save('saved-receipt.json', `/api/receipts/${receiptIn(bought)}`);
    const keys = await save('saved-keys.json', '/.well-known/jwks.json');
    const run = await it.run(it.snippet('python-verify-offline', ''), {
      args: ['receipt', receipt, '--keys', keys],
    });
    assert.deepEqual([run.code, /^verified$/m.test(run.stdout)], [0, true], run.output);
  });

  test('curl-execute: unpaid, it shows the 402', async () => {
    const { stdout, output } = await it.runFree('curl-execute');
    assert.match(stdout, /^HTTP\/1\.1 402 /, output);
    assert.match(stdout, /^payment-required: \S+/im, output);
  });

  test('curl-discovery: reads the guide, the catalog and the interface description', async () => {
    const { stdout, output } = await it.runFree('curl-discovery');
    assert.match(stdout, /^# webhook-relay\n/, output);
    for (const word of ['"execute.webhook"', '"openapi":"3.1.0"']) assert.ok(stdout.includes(word), output);
  });

  test('mcp-config: an MCP client that is configured by it finds the tools', async () => {
    const { language, code } = it.snippet('mcp-config', '');
    assert.equal(language, 'json');
    const { mcpServers } = JSON.parse(code);
    assert.deepEqual(Object.keys(mcpServers), ['webhook-relay']);
    const { type, url } = mcpServers['webhook-relay'];
    assert.equal(type, 'http');
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const { tools } = await client.listTools();
    await client.close();
    assert.ok(tools.some(({ name }) => name === 'execute_webhook'));
  });

  test('mcp-tools: lists the tools and calls a free one', async () => {
    const { stdout, output } = await it.runFree('mcp-tools');
    for (const word of ['\nexecute_guided_webhook: ', '"allowed":true']) {
      assert.ok(stdout.includes(word), output);
    }
  });

  test('curl-decide: recommends to pay', async () => {
    const { recommendation, decisionId } = await it.jsonOf('curl-decide');
    assert.equal(recommendation, 'pay_and_execute');
    assert.match(String(decisionId), /^dec_/);
  });

  test('python-decide: recommends to pay; a recommendation against it is a failure', async () => {
    const { stdout, output } = await it.runFree('python-decide');
    assert.match(stdout, /^dec_\S+ pay_and_execute high\n$/, output);
    const { code, ...rest } = it.snippet('python-decide', '/not-paid');
    const poor = await it.run({
      ...rest,
      code: code.replace('"maxPriceUsd": "0.003"', '"maxPriceUsd": "0.002"'),
    });
    assert.deepEqual([poor.code, / do_not_pay high\n- /.test(poor.stdout)], [1, true], poor.output);
  });

  for (const [id, verdict] of [
    ['curl-verify', /"ok":true,"receiptId":"(rcpt_[0-9a-z]+)".*"signatureVerified":true/],
    ['python-verify', /^(rcpt_[0-9a-z]+) verified succeeded$/m],
    ['javascript-verify-offline', /^verified (rcpt_[0-9a-z]+) job_\S+ succeeded 200$/m],
  ] as const) {
    test(`${id}: verifies the receipt that it is given, or the newest`, async () => {
      const { body } = await get<{ proofs: { receiptId: string }[] }>(`${it.service.url}/api/proofs/recent`);
      const [newest, older] = body.proofs.map(({ receiptId }) => receiptId);
      assert.ok(newest !== undefined && older !== undefined);
      const runs = [
        [newest, {}],
        [older, { args: [older], env: { RECEIPT_ID: older } }],
      ] as const;
      for (const [receiptId, options] of runs) {
        const run = await it.runFree(id, options);
        assert.equal(verdict.exec(run.stdout)?.[1], receiptId, run.output);
      }
    });

    test(`${id}: an unknown receipt ends with a failure`, async () => {
      const nobodys = `rcpt_${'0'.repeat(26)}`;
      const run = await it.run(it.snippet(id, ''), { args: [nobodys], env: { RECEIPT_ID: nobodys } });
      assert.notEqual(run.code, 0, run.output);
      assert.doesNotMatch(run.stdout, verdict);
    });
  }

  test('a failed job: its receipt verifies, and each snippet reports that the action was not done', async () => {
    const { env } = await it.wallet();
    it.paid.target.answer(() => ({ status: 500 }));
    const failed = await it.run(it.snippet('javascript-execute', '/fails'), { env });
    it.paid.target.answer(() => ({}));
    assert.match(failed.stdout, /^x402 failed rcpt_/m, failed.output);
    assert.deepEqual([failed.code, /^verified \[/m.test(failed.stdout)], [1, true], failed.output);
    const receiptId = receiptIn(failed);
    for (const [id, said] of [
      ['curl-verify', /"ok":true,.*"signatureVerified":true/],
      ['python-verify', / verified failed$/m],
      ['javascript-verify-offline', /^verified \S+ \S+ failed 500$/m],
    ] as const) {
      const run = await it.run(it.snippet(id, ''), { args: [receiptId], env: { RECEIPT_ID: receiptId } });
      assert.match(run.stdout, said, run.output);
      assert.equal(run.code, 1, run.output);
    }
  });

  const failedCheck = (body: string) =>
    body.replace('"signature_valid","ok":true', '"signature_valid","ok":false');
  for (const [id, lie] of [
    ['curl-verify', failedCheck],
    ['python-verify', failedCheck],
    [
      'javascript-verify-offline',
      (body: string) =>
        body.replace(/("jws":"[^.]+\.[^.]+\.)(.)/, (_, head, first) => head + (first === 'A' ? 'B' : 'A')),
    ],
  ] as const) {
    test(`${id}: an invalid receipt ends with a failure`, async () => {
      let lies = 0;
      const rule: FrontRule = async (_, forward) => {
        const answer = await forward();
        const body = lie(answer.body);
        lies += Number(body !== answer.body);
        return { ...answer, body };
      };
      const front = await startRelayFront();
      front.behind(it.service.url);
      front.rule(rule);
      const { code, ...rest } = it.snippet(id, '');
      const run = await it.run({ ...rest, code: code.replaceAll(it.service.url, front.url) });
      await front.down();
      assert.deepEqual([run.code, lies], [1, 1], run.output);
      assert.doesNotMatch(run.stdout, /^verified|\d verified/m, run.output);
    });
  }

  for (const [id, driver] of [
    [
      'javascript-verify-webhook',
      `import process from 'node:process';
const verdicts = [];
for (const { headers, body, now } of JSON.parse(process.argv[2] ?? '')) {
  Date.now = () => now * 1000;
  const bytes = Buffer.from(body, 'base64');
  // As fetch has headers, as Node and Express do, and in the case of the wire.
  const titled = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
  const said = [];
  for (const form of [new Headers(headers), headers, titled]) said.push(await verifyWebhook(form, bytes));
  verdicts.push(new Set(said).size === 1 ? said[0] : said);
}
console.log(JSON.stringify(verdicts));`,
    ],
    [
      'python-verify-webhook',
      `import sys
verdicts = []
for case in json.loads(sys.argv[1]):
    time.time = time.monotonic = lambda: case["now"]
    titled = {name.title(): value for name, value in case["headers"].items()}
    said = [verify_webhook(headers, base64.b64decode(case["body"])) for headers in (case["headers"], titled)]
    verdicts.append(said[0] if len(set(said)) == 1 else said)
print(json.dumps(verdicts))`,
    ],
  ] as const) {
    test(`${id}: accepts a delivery as it arrived, within 5 minutes, by a valid key; nothing else`, async () => {
      const path = `/delivered-${id}`;
      await it.run(it.snippet('javascript-execute', path), await it.wallet());
      const [sent] = it.calls(path);
      assert.ok(sent);
      const at = Number(sent.headers['webhook-timestamp']);
      const signature = sent.headers['webhook-signature'] ?? '';
      type Case = { headers: Record<string, string>; body: Uint8Array; now: number };
      const arrived: Case = { headers: sent.headers, body: sent.body, now: at + 2 };
      const having = (headers: Record<string, string>): Case => ({
        ...arrived,
        headers: { ...arrived.headers, ...headers },
      });
      const { 'webhook-signature': _signature, ...unsigned } = arrived.headers;
      const good: readonly Case[] = [
        arrived,
        { ...arrived, now: at + 300 },
        { ...arrived, now: at - 300 },
        having({ 'webhook-signature': `v1,AAAA v1a,AAAA ${signature}` }),
      ];
      const bad: readonly Case[] = [
        { ...arrived, now: at + 301 },
        { ...arrived, now: at - 301 },
        { ...arrived, body: Buffer.concat([arrived.body, Buffer.from(' ')]) },
        { ...arrived, body: new Uint8Array() },
        { ...arrived, headers: unsigned },
        having({ 'webhook-id': `job_${'0'.repeat(26)}` }),
        having({ 'webhook-timestamp': String(at + 1) }),
        having({ 'webhook-timestamp': 'now' }),
        having({ 'webhook-timestamp': '' }),
        having({ 'webhook-signature': signature.replace('v1a,', 'v1,') }),
        having({ 'webhook-signature': 'v1a,' }),
        having({ 'webhook-signature': 'v1a,ü' }),
        having({ 'webhook-signature': `v1a,${Buffer.alloc(64).toString('base64')}` }),
      ];
      const { code, ...rest } = it.snippet(id, '');
      const verdicts = async (cases: readonly Case[], relay = it.service.url): Promise<unknown> => {
        const args = [
          JSON.stringify(cases.map((one) => ({ ...one, body: Buffer.from(one.body).toString('base64') }))),
        ];
        const driven = `${code.replaceAll(it.service.url, relay)}\n${driver}\n`;
        const run = await it.run({ ...rest, code: driven }, { args });
        assert.equal(run.code, 0, run.output);
        return JSON.parse(run.stdout);
      };
      assert.deepEqual(await verdicts([...good, ...bad]), [...good.map(() => true), ...bad.map(() => false)]);

      const front = await startRelayFront();
      front.behind(it.service.url);
      const withKeys = (to: string) => {
        front.rule(async (_, forward) => {
          const answer = await forward();
          return { ...answer, body: answer.body.replace(/"purpose":"receipt"/g, to) };
        });
        return verdicts([arrived], front.url);
      };
      assert.deepEqual(await withKeys(`"purpose":"receipt","exp":${at}`), [true]);
      assert.deepEqual(await withKeys(`"purpose":"receipt","exp":${at - 1}`), [false]);
      assert.deepEqual(await withKeys(`"purpose":"receipt","revokedAt":${at + 60}`), [false]);
      assert.deepEqual(await withKeys('"purpose":"checkpoint"'), [false]);

      let downloads = 0;
      front.rule(async (_, forward) => {
        const answer = await forward();
        downloads++;
        return downloads > 1 ? answer : { ...answer, body: '{"keys":[]}' };
      });
      const later = [0, 9, 11].map((seconds) => ({ ...arrived, now: at + seconds }));
      assert.deepEqual(await verdicts(later, front.url), [false, false, true], 'no key fits: loaded again');
      assert.equal(downloads, 2);
      await front.down();
    });
  }

  test('curl-policy-check: the target is allowed', async () => {
    assert.equal((await it.jsonOf('curl-policy-check')).allowed, true);
  });

  test('curl-handoff: a package without payment', async () => {
    const { ok, handoff } = await it.jsonOf('curl-handoff');
    const { paid, actions } = handoff as { paid: boolean; actions: readonly unknown[] };
    assert.deepEqual([ok, paid, actions.length], [true, false, 5]);
  });

  test('curl-schedule-preview: the next runs, and that none is executed', async () => {
    const { ok, willExecute, preview } = await it.jsonOf('curl-schedule-preview');
    const { nextRuns } = preview as { nextRuns: readonly unknown[] };
    assert.deepEqual([ok, willExecute, nextRuns.length], [true, false, 3]);
  });

  test('curl-canary: prints what arrived', async () => {
    const { ok, method } = await it.jsonOf('curl-canary');
    assert.deepEqual([ok, method], [true, 'POST']);
  });

  test('curl-terms: prints the challenge', async () => {
    const { x402Version, accepts } = await it.jsonOf('curl-terms');
    const [terms] = accepts as { payTo: string; amount: string }[];
    assert.deepEqual([x402Version, terms?.payTo, terms?.amount], [2, it.paid.payTo, String(PRICE)]);
  });

  test('python-buyer-policy: the terms of the service fit', async () => {
    assert.match((await it.runFree('python-buyer-policy')).stdout, /^fits: \{/);
  });

  const OTHER_ADDRESS = `0x${'1'.repeat(40)}`;
  for (const [id, terms] of [
    [
      'javascript-execute',
      {
        price: [/maxPriceUsd: '0.003'/, "maxPriceUsd: '0.002'"],
        network: [/network: 'eip155:8453'/, "network: 'eip155:1'"],
        pay_to: [/payTo: '0x\w{40}'/, `payTo: '${OTHER_ADDRESS}'`],
      },
    ],
    [
      'python-buyer-policy',
      {
        price: [/MAX_AMOUNT = 3000/, 'MAX_AMOUNT = 2999'],
        asset: [/ASSET = "0x\w{40}"/, `ASSET = "${OTHER_ADDRESS}"`],
        network: [/NETWORK = "eip155:8453"/, 'NETWORK = "eip155:1"'],
        payTo: [/PAY_TO = "0x\w{40}"/, `PAY_TO = "${OTHER_ADDRESS}"`],
        resource: [/== RESOURCE/, '== "https://example.com/"'],
      },
    ],
  ] as const) {
    const refusal = (term: string) =>
      id === 'javascript-execute'
        ? `RelayError: policy_refused: offer.${term}: expected `
        : `not what this buyer accepts: ${term}\n`;
    test(`${id}: price, asset, network, payee or resource not as accepted: nothing is signed`, async () => {
      const path = `/other-terms-${id}`;
      const { env, spent } = await it.wallet();
      const { code, ...rest } = it.snippet(id, path);
      for (const [term, [from, to]] of Object.entries(terms)) {
        assert.match(code, from);
        const run = await it.run({ ...rest, code: code.replace(from, to) }, { env });
        const refused = run.output.includes(refusal(term));
        assert.deepEqual([run.code, refused], [1, true], run.output);
      }
      assert.deepEqual([it.calls(path).length, await spent()], [0, 0n]);
    });
  }

  test('every snippet of the document was run', () => {
    assert.deepEqual(
      [...it.tried].sort(),
      allOf(it.document)
        .map(({ id }) => id)
        .sort(),
    );
  });
});
