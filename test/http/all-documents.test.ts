// Rules that hold for every document, page and MCP text of a deployment.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DONE_WHEN } from '#src/discovery/guidance.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { RetryOptions, WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { ExecutionResponse } from '#src/http/response/execution-response.ts';
import { lab } from '#test/adapters/payments/lab.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

type Settings = NonNullable<Parameters<typeof fakeWorld>[0]>['settings'];
type SourcedText = { readonly from: string; readonly text: string };

/** Every string of a JSON value, names left out. */
function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

async function worldOf(mode: 'demo' | 'x402', settings: Settings = {}) {
  const { network, price } = settings.offer ?? {};
  const x402 = network === undefined || price === undefined ? {} : { network, priceUsd: price.slice(1) };
  const payments = mode === 'x402' ? (await lab({ x402 })).protocol : null;
  return clientOf(fakeWorld({ payments, settings: { mode, ...settings } }));
}

/** All texts of the deployment, one by one; `whole`: the complete answers. */
async function allTexts(mode: 'demo' | 'x402', settings: Settings = {}) {
  const client = await worldOf(mode, settings);
  const texts: SourcedText[] = [];
  const whole: SourcedText[] = [];
  const take = (from: string, text: string, isJson: boolean) => {
    whole.push({ from, text });
    const found = isJson ? stringsIn(JSON.parse(text)) : text.split('\n');
    texts.push(...found.map((one) => ({ from, text: one })));
  };
  const { documents, wellKnown, pages } = (await client.get(ROUTES.discovery.path)).body as Record<
    'documents' | 'wellKnown' | 'pages',
    readonly { readonly id: string; readonly address: string; readonly mediaType: string }[]
  >;
  for (const { id, address, mediaType } of [...documents, ...wellKnown, ...pages]) {
    if (mediaType.startsWith('image/')) continue;
    const answer = await client.call(new URL(address).pathname);
    assert.equal(answer.status, 200, id);
    take(id, await answer.text(), mediaType.includes('json'));
  }
  const clientInfo = { name: 'test', version: '1' };
  for (const [method, params] of [
    ['initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }],
    ['tools/list', {}],
  ] as const) {
    const accept = { accept: 'application/json, text/event-stream' };
    const answer = await client.post(ROUTES.mcp.path, { jsonrpc: '2.0', id: 1, method, params }, accept);
    take(`mcp ${method}`, await answer.text(), true);
  }
  assert.ok(whole.length > 20, `${whole.length}`);
  return { texts, whole };
}

const MODES = ['demo', 'x402'] as const;
const longBase = `https://${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}:65535`;

for (const mode of MODES) {
  test(`${mode}: no document states only a part of when an action is done`, async () => {
    const { texts } = await allTexts(mode);
    const claims = texts.filter(({ text }) =>
      /\b(done|complete|proven|succeeded)\b[^.]{0,20}\b(when|where|once|by)\b/i.test(text),
    );
    for (const { from, text } of claims) assert.ok(text.includes(DONE_WHEN), `${from}: ${text}`);
    // Whatever judges a report judges the job as well, code too.
    const judging = texts.filter(({ text }) => /signatureVerified(?!: boolean;)./.test(text));
    for (const { from, text } of judging) assert.match(text, /succeeded/, `${from}: ${text}`);
    const sources = new Set(claims.map(({ from }) => from));
    for (const source of ['llms', 'openapi', 'quickstart', 'catalog', 'capabilities', 'snippets'])
      assert.ok(sources.has(source), source);
    assert.ok(sources.has('mcp initialize') && sources.has('mcp tools/list'));
    assert.ok(judging.length >= 10, `${judging.length}`);
  });

  test(`${mode}: with another price and network the usual ones stand nowhere`, async () => {
    const offer = { scheme: 'exact', network: 'eip155:84532', price: '$0.017' };
    const { whole } = await allTexts(mode, { offer });
    for (const { from, text } of whole)
      assert.doesNotMatch(text, /0\.003|\b3000\b|8453\b|on Base(?! Sepolia)/, from);
    const priced = whole.filter(({ text }) => text.includes('0.017'));
    assert.ok(priced.length > 10, `${priced.length}`);
  });

  test(`${mode}: guide and guidance are under 4 kB at the longest address there is, and still lead on`, async () => {
    for (const baseUrl of [longBase, 'https://relay.example']) {
      const client = await worldOf(mode, { baseUrl });
      const guide = await (await client.call(ROUTES.llms.path)).text();
      assert.ok(new TextEncoder().encode(guide).length < 4000, `${guide.length}`);
      const links = [...guide.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, link = '']) => link);
      assert.ok(links.length >= 7 && guide.includes(baseUrl));
      assert.match(guide, /\/log\/checkpoint heads their transparency log, unwitnessed/);
      for (const link of links) {
        const { origin, pathname } = new URL(link, baseUrl);
        assert.equal(origin, baseUrl);
        assert.equal((await client.call(pathname)).status, 200, link);
      }
      assert.equal(links[0], baseUrl === longBase ? '/openapi.json' : 'https://relay.example/openapi.json');
      const { info, servers } = (await client.get(ROUTES.openapi.path)).body as {
        readonly info: { readonly 'x-guidance': string };
        readonly servers: readonly { readonly url: string }[];
      };
      assert.ok(info['x-guidance'].length <= 4000, `${info['x-guidance'].length}`);
      assert.deepEqual([info['x-guidance'].includes('://'), servers[0]?.url], [false, baseUrl]);
    }
  });
}

test('a caller that has read the guide only knows the fields, limits, headers of payment, payee and errors', async () => {
  const client = await worldOf('x402');
  const guide = await (await client.call(ROUTES.llms.path)).text();
  for (const name of [...Object.keys(WebhookRequest.properties), ...Object.keys(RetryOptions.properties)])
    assert.match(guide, new RegExp(`\\b${name}\\b`));
  const { urlLength, targetHeaders, idempotencyKeyLength, retryAttempts, retryBackoffMs, timeoutMs } = LIMITS;
  for (const { max } of [
    urlLength,
    targetHeaders,
    idempotencyKeyLength,
    retryAttempts,
    retryBackoffMs,
    timeoutMs,
  ])
    assert.match(guide, new RegExp(`\\b${max}\\b`));
  const exampleOf = (title: string) => JSON.parse(guide.split(`\n${title}: `)[1]?.split('\n')[0] ?? '');
  assert.deepEqual(schemaCheck(WebhookRequest).faults(exampleOf('Action')), []);
  const { job, receipt } = exampleOf('Answer, in part');
  const { properties } = ExecutionResponse;
  for (const name of Object.keys(job)) assert.ok(name in properties.job.properties, name);
  for (const name of Object.keys(receipt)) assert.ok(name in properties.receipt.properties, name);
  for (const name of [
    'PAYMENT-REQUIRED',
    'PAYMENT-SIGNATURE',
    'PAYMENT-RESPONSE',
    'X-PAYMENT',
    'X-PAYMENT-RESPONSE',
  ])
    assert.match(guide, new RegExp(`[^-]\\b${name}[,. ]`));
  assert.match(guide, /price, network, asset, payTo and resource .* otherwise stop\./);
  assert.match(
    guide,
    /`payTo`, is published in `accepts` of \/api\/pricing and \/\.well-known\/x402\.json\./,
  );
  for (const path of ['/api/pricing', '/.well-known/x402.json']) {
    const { body } = await client.get(path);
    assert.match(JSON.stringify(body), /"accepts":\[\{[^\]]*"payTo":"0x[0-9a-fA-F]{40}"/, path);
  }
  assert.match(guide, /^- \[Errors\]\(\S+\/api\/errors\)/m);
});

test('the front page names replays and every refusal that is never charged', async () => {
  const page = await (await (await worldOf('x402')).call(ROUTES.frontPage.path)).text();
  const [, never = ''] = page.split('Never charged');
  for (const word of ['<code>4xx</code>', '<code>508</code>', 'replays'])
    assert.ok(never.includes(word), word);
});

// ── schemas ─────────────────────────────────────────────────────────────────────────────────────────────

/** Where a schema is as the service enforces it: generators make empty classes of a union of constants. */
function enforcedForms(value: unknown, at = ''): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.entries(value).flatMap(([name, of]) => enforcedForms(of, `${at}/${name}`));
  const { anyOf, patternProperties } = value as { anyOf?: unknown; patternProperties?: object };
  const isUnion = Array.isArray(anyOf) && anyOf.every((of) => typeof of === 'object' && 'const' in of);
  return isUnion || patternProperties !== undefined ? [at, ...inner] : inner;
}

test('every schema in a document, a 402 and a list of tools has the form that is published', async () => {
  const { whole } = await allTexts('x402');
  const json = whole.filter(({ text }) => text.startsWith('{'));
  const scheduled = await worldOf('x402', { schedules: { horizonDays: 30 } });
  const capabilities = await (await scheduled.call(ROUTES.scheduleCapabilities.path)).text();
  const unpaid = await scheduled.call(ROUTES.execute.path, { method: 'POST' });
  assert.equal(unpaid.status, 402);
  const challenge = atob(unpaid.headers.get('payment-required') ?? '');
  const all = [
    ...json,
    { from: 'schedules on', text: capabilities },
    { from: '402', text: await unpaid.text() },
    { from: 'header of the 402', text: challenge },
  ];
  assert.ok(all.some(({ text }) => text.includes('"enum":["POST","PUT","PATCH","DELETE"]')));
  for (const { from, text } of all) assert.deepEqual(enforcedForms(JSON.parse(text)), [], from);
});
