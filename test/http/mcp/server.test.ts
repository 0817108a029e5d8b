// The tools of the MCP server: what is listed, and that a call of a tool is a call of its route.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { MCP_TOOLS } from '#src/discovery/documents/mcp.ts';
import { LIMITS, SERVICE } from '#src/domain/limits.ts';
import { Fault, refused } from '#src/domain/refusal.ts';
import type { Quota } from '#src/ports/quota.ts';
import { fakeProtocol } from '#test/support/chain/fakes-protocol.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { callMessage, connectInProcess, GENERATIONS, sendMessage } from '#test/support/process/mcp-client.ts';
import {
  countingQuota,
  DECISION,
  decided,
  execution,
  fakeWorld,
  JOB,
  RECEIPT,
} from '#test/support/world/http-deps.ts';

const REQUEST = { url: 'https://a.example/hook', body: { n: 1 } };
const GOOD: Record<string, Record<string, unknown>> = {
  execute_webhook: REQUEST,
  execute_guided_webhook: { decisionId: decided().decisionId, action: REQUEST },
  decide_webhook: { action: REQUEST, buyerPolicy: { maxPriceUsd: '0.01' } },
  check_policy: REQUEST,
  get_job: { id: JOB },
  get_receipt: { id: RECEIPT },
  verify_receipt: { id: RECEIPT },
  get_pricing: {},
};
const KIND_OF_ID: Record<string, string> = { get_job: JOB, get_receipt: RECEIPT, verify_receipt: RECEIPT };

for (const generation of GENERATIONS)
  test(`the server states its name, its purpose and the tools of the table, each with strict arguments (${generation})`, async () => {
    const { sdk } = await connectInProcess(clientOf(fakeWorld()), undefined, generation);
    assert.deepEqual(sdk.getServerVersion(), SERVICE);
    assert.deepEqual(sdk.getServerCapabilities(), { tools: {} });
    assert.match(sdk.getInstructions() ?? '', /decide_webhook.*execute_guided_webhook.*verify_receipt/);
    const { tools } = await sdk.listTools();
    assert.deepEqual(
      tools.map(({ name, title }) => [name, title]),
      MCP_TOOLS.map(({ name, title }) => [name, title]),
    );
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    for (const { name, inputSchema, outputSchema, annotations } of tools) {
      const fits = ajv.compile(inputSchema as object);
      ajv.compile((outputSchema ?? assert.fail()) as object);
      assert.equal(fits(GOOD[name]), true, name);
      assert.equal(fits({ ...GOOD[name], surprise: 1 }), false, name);
      const acts = name.startsWith('execute_');
      const { readOnlyHint, destructiveHint, openWorldHint } = annotations ?? {};
      assert.deepEqual(
        [readOnlyHint, destructiveHint, openWorldHint],
        [!acts && name !== 'decide_webhook', acts, acts],
        name,
      );
    }
  });

test('the tools and the instructions state the price as configured, and that demo mode has none', async () => {
  const offer = { scheme: 'exact', network: 'eip155:84532', price: '$0.01' };
  const cases = [
    [fakeWorld({ settings: { offer } }), /demo mode/],
    [fakeWorld({ settings: { mode: 'x402', offer }, payments: fakeProtocol() }), /\$0\.01 .*Base Sepolia/],
  ] as const;
  for (const [world, words] of cases) {
    const { sdk } = await connectInProcess(clientOf(world));
    const { tools } = await sdk.listTools();
    assert.match(sdk.getInstructions() ?? '', words);
    for (const [n, { description }] of tools.entries()) {
      assert.equal(words.test(description ?? ''), MCP_TOOLS[n]?.route.paid, String(MCP_TOOLS[n]?.name));
    }
  }
});

for (const { name, route } of MCP_TOOLS) {
  for (const generation of GENERATIONS)
    test(`${name}: the answer of its route, as structured content and as text (${generation})`, async () => {
      const http = clientOf(fakeWorld());
      const { call } = await connectInProcess(http, undefined, generation);
      const args = GOOD[name] ?? assert.fail();
      const path = route.path.replace(/:\w+/, () => String(args.id));
      const answer = await (route.method === 'POST' ? http.post(path, args) : http.call(path));
      assert.equal(answer.status, 200);
      const result = await call(name, args);
      assert.equal(result.isError, false);
      assert.deepEqual(JSON.parse(result.text), result.structured);
      const withoutTime = (document: object) => ({ ...document, generatedAt: null });
      assert.deepEqual(withoutTime(result.structured), withoutTime((await answer.json()) as object));
      assert.equal(result.settlement, null);
    });

  for (const generation of GENERATIONS)
    test(`${name}: arguments that do not fit are invalid_request with their places, and nothing is done (${generation})`, async () => {
      const world = fakeWorld();
      const { call } = await connectInProcess(clientOf(world), undefined, generation);
      const { structured, isError, text } = await call(name, { ...GOOD[name], surprise: 1 });
      const { error } = structured as { error: { code: string; details: { path: string }[] } };
      assert.deepEqual([isError, error.code], [true, 'invalid_request']);
      assert.deepEqual(
        error.details.map(({ path }) => path),
        ['/surprise'],
      );
      assert.match(text, /^invalid_request: .*\nDetails: .*\/surprise/);
      assert.equal(world.executed.length + world.executedGuided.length, 0);
    });
}

for (const generation of GENERATIONS)
  test(`a record that is not there, and a text that is no id, are the refusal of the route (${generation})`, async () => {
    const http = clientOf(fakeWorld());
    const { call } = await connectInProcess(http, undefined, generation);
    for (const [name, known] of Object.entries(KIND_OF_ID)) {
      const expected = name === 'get_job' ? 'job_not_found' : 'receipt_not_found';
      const path = MCP_TOOLS.find((tool) => tool.name === name)?.route.path ?? assert.fail();
      const overHttp = await http.get(path.replace(':id', 'no-id'));
      assert.equal(codeOf(overHttp.body as Record<string, unknown>), expected);
      for (const id of [
        known.replace(/a$/, 'b'),
        'no-id',
        '..',
        '.',
        '%2E.',
        '',
        '/',
        `${known}/..`,
        `../jobs/${known}`,
        `${known}?x`,
        `${known}#`,
        '%2e%2e',
        'é\n',
        DECISION,
      ]) {
        const { structured, isError } = await call(name, { id });
        assert.deepEqual([isError, codeOf(structured)], [true, expected], id);
      }
      for (const args of [{}, { id: 5 }, { id: null }])
        assert.equal(codeOf((await call(name, args)).structured), 'invalid_request');
    }
  });

test('a target that failed is a result, not an error: there is a job and a receipt', async () => {
  const failed = { ...execution().job, status: 'failed', responseStatus: 500 } as const;
  const { call } = await connectInProcess(
    clientOf(fakeWorld({ execute: async () => execution({ job: failed }) })),
  );
  const { isError, structured } = await call('execute_webhook', REQUEST);
  assert.equal(isError, false);
  assert.equal((structured as { job: { status: string } }).job.status, 'failed');
});

test('refusals and faults of the route are results with isError: code, message, details, when to come again', async () => {
  const conflict = refused('idempotency_in_progress', 'Still running.', {
    details: { jobId: JOB },
    retryAfterSeconds: 3,
  });
  const cases = [
    [async () => conflict, 'idempotency_in_progress', 3],
    [async () => refused('unsafe_target', 'Not a public address.'), 'unsafe_target', undefined],
    [async () => refused('relay_loop', 'It came through here.'), 'relay_loop', undefined],
    [() => Promise.reject(new Fault('payment_unconfirmed', 'Not confirmed yet.')), 'payment_unconfirmed', 5],
    [() => Promise.reject(new Error('secret words')), 'internal_error', undefined],
  ] as const;
  for (const [execute, code, retryAfterSeconds] of cases) {
    const { call } = await connectInProcess(clientOf(fakeWorld({ execute })));
    const { isError, structured, text, settlement } = await call('execute_webhook', REQUEST);
    assert.deepEqual([isError, codeOf(structured), settlement], [true, code, null]);
    assert.equal(structured.retryAfterSeconds, retryAfterSeconds);
    assert.ok(text.startsWith(`${code}: `));
    assert.equal(/Try again in (\d+)/.exec(text)?.[1], retryAfterSeconds?.toString());
    assert.equal(/same _meta\["x402\/payment"\]/.test(text), code === 'payment_unconfirmed');
    assert.equal(JSON.stringify([structured, text]).includes('secret words'), false);
    if (code === 'idempotency_in_progress') assert.match(text, new RegExp(`/api/jobs/${JOB}`));
  }
});

test('a fault is logged under the request id of the message', async () => {
  const world = fakeWorld({ execute: () => Promise.reject(new Error('broken')) });
  const http = clientOf(world);
  const response = await sendMessage(http, callMessage('execute_webhook', REQUEST), {
    'x-request-id': 'mine',
  });
  assert.equal(response.headers.get('x-request-id'), 'mine');
  assert.deepEqual(
    world.log.lines.map(({ fields }) => (fields as { requestId: string }).requestId),
    ['mine'],
  );
});

test('a tool and its route share one rate per client address', async () => {
  const [limited, unlimited] = [countingQuota(3), countingQuota()];
  const quota: Quota = {
    ...limited,
    take: (rule, key) => (rule.name === 'client-mcp' ? unlimited : limited).take(rule, key),
  };
  const http = clientOf(fakeWorld({ quota }));
  const one = await connectInProcess(http, '198.51.100.7');
  const other = await connectInProcess(http, '203.0.113.9');
  assert.equal((await http.post('/api/execute/webhook', REQUEST)).status, 200);
  assert.equal((await one.call('execute_webhook', REQUEST)).isError, false);
  assert.equal((await http.post('/api/execute/webhook', REQUEST)).status, 200);
  const { structured } = await one.call('execute_webhook', REQUEST);
  assert.deepEqual([codeOf(structured), structured.retryAfterSeconds], ['rate_limited', 31]);
  assert.equal((await http.post('/api/execute/webhook', REQUEST)).status, 429);
  assert.equal((await other.call('execute_webhook', REQUEST)).isError, false);
  assert.equal((await one.call('get_job', { id: JOB })).isError, false);
});

test('Via of the message reaches the use case, so that a loop through this server is seen', async () => {
  const world = fakeWorld();
  const http = clientOf(world);
  await sendMessage(http, callMessage('execute_webhook', REQUEST), { via: '1.1 webhook-relay-abc' });
  await sendMessage(http, callMessage('execute_webhook', REQUEST));
  assert.deepEqual(
    world.executed.map(({ via }) => via),
    ['1.1 webhook-relay-abc', null],
  );
});

test('the arguments reach the use case as over HTTP, whatever their names and depth', async () => {
  const world = fakeWorld();
  const http = clientOf(world);
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  const bodies = [
    '{"__proto__":{"a":1},"constructor":2,"größe":"12,50 €","n":[0,1e3,0.1]}',
    nested(LIMITS.jsonDepth.max - 1),
    JSON.stringify('x'.repeat(LIMITS.requestBodyBytes.max - 60)),
  ];
  for (const body of bodies) {
    const text = `{"url":"https://a.example/","body":${body}}`;
    assert.equal((await http.post('/api/execute/webhook', text)).status, 200);
    const message = JSON.stringify(callMessage('execute_webhook')).replace('{}', () => text);
    const { result } = (await (await sendMessage(http, message)).json()) as { result: { isError: boolean } };
    assert.equal(result.isError, false);
    const [overHttp, overMcp] = world.executed.slice(-2);
    assert.equal(JSON.stringify(overMcp?.request), JSON.stringify(overHttp?.request));
  }
  assert.equal(world.executed.length, 2 * bodies.length);
  for (const [args, code] of [
    [`{"url":"https://a.example/","body":${nested(LIMITS.jsonDepth.max)}}`, 'invalid_request'],
    ['{"url":"https://a.example/","__proto__":1}', 'invalid_request'],
    [JSON.stringify({ ...REQUEST, body: 'x'.repeat(LIMITS.requestBodyBytes.max) }), 'body_too_large'],
  ] as const) {
    const over = await http.post('/api/execute/webhook', args);
    assert.equal(codeOf((await over.json()) as Record<string, unknown>), code);
    const message = JSON.stringify(callMessage('execute_webhook')).replace('{}', () => args);
    const response = await sendMessage(http, message);
    const { result, error } = (await response.json()) as {
      result?: { structuredContent: Record<string, unknown> };
      error?: { code: string };
    };
    assert.equal(result === undefined ? error?.code : codeOf(result.structuredContent), code);
    assert.equal(response.headers.get('connection'), null);
  }
  assert.equal(world.executed.length, 2 * bodies.length);
});

test('20 calls at once, with the same JSON-RPC id: each gets its own answer', async () => {
  const world = fakeWorld({
    async checkPolicy({ request }, client) {
      const found = await fakeWorld().checkPolicy({ request }, client);
      if ('refused' in found) return found;
      return { ...found, target: { ...found.target, hostname: new URL(request.url).hostname } };
    },
  });
  const http = clientOf(world);
  const hosts = Array.from({ length: 20 }, (_, n) => `a${n}.example`);
  const got = await Promise.all(
    hosts.map(async (host) => {
      const response = await sendMessage(http, callMessage('check_policy', { url: `https://${host}/` }));
      const { id, result } = (await response.json()) as {
        id: number;
        result: { structuredContent: { target: { hostname: string } } };
      };
      return [id, result.structuredContent.target.hostname];
    }),
  );
  assert.deepEqual(
    got,
    hosts.map((host) => [7, host]),
  );
});

test('what a caller sent is not sent back in a refusal, nor logged', async () => {
  const secrets = ['s3cret-path', 's3cret-header', 's3cret-body', 's3cret-key', 's3cret-payment'];
  const [path, header, body, idempotencyKey, payment] = secrets;
  const args = { url: `https://a.example/${path}`, headers: { authorization: header }, body, idempotencyKey };
  const meta = { 'x402/payment': { x402Version: 2, payload: payment } };
  const refuse = async () => refused('unsafe_target', 'Not a public address.');
  const broken = () => Promise.reject(new Error('broken'));
  for (const execute of [refuse, broken]) {
    for (const payments of [null, fakeProtocol()]) {
      const world = fakeWorld({ execute, payments });
      const http = clientOf(world);
      for (const given of [args, { ...args, timeoutMs: 5 }]) {
        const text = await (await sendMessage(http, callMessage('execute_webhook', given, meta))).text();
        assert.match(text, /"isError":true/);
        const logged = JSON.stringify(world.log.lines);
        for (const secret of secrets)
          assert.equal(text.includes(secret) || logged.includes(secret), false, secret);
      }
    }
  }
});

const codeOf = (structured: Record<string, unknown>) =>
  (structured.error as { code?: string } | undefined)?.code;
