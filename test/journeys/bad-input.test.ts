// Bad input to the running process: input that its description allows, nearly allows, or does not allow. It never answers
// 500, and every answer is one that it describes.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import type { RouteFacts } from '#src/discovery/routes.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { type JsonSchema, nearly } from '#test/support/schema-arbitrary.ts';
import { logLines, type Service } from '#test/support/service.ts';
import { type Executed, execute, get, makeWorld, type World } from '#test/support/service-world.ts';

type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>;
type Operation = {
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly schema: JsonSchema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
};
type OpenApi = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const RUNS = 150;
const ERROR: JsonSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string' }, message: { type: 'string' } },
    },
  },
};

let world: World;
let service: Service;
let document: OpenApi;
let known: Executed;
const ajv = new Ajv2020({ strict: false, validateFormats: false });
const compiled = new Map<object, ValidateFunction>();
const seen = new Map<string, number>();

type Sent = {
  readonly path: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
};

/** Sends the request and checks the answer against `operation`; undefined: the description has none. */
async function sendAndJudge(sent: Sent, operation: Operation | undefined): Promise<Response> {
  const { path, method, headers = {}, body } = sent;
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers,
    redirect: 'manual',
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  const { status } = response;
  const title = `${method} ${path} ${status} ${text.slice(0, 300)}`;
  seen.set(`${status}`, (seen.get(`${status}`) ?? 0) + 1);
  assert.notEqual(status, 500, title);
  assert.match(response.headers.get('x-request-id') ?? '', /^[A-Za-z0-9._-]{1,128}$/, title);
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff', title);
  if (operation === undefined) {
    const expected = isAside(path, method) ? [200, 400, 404] : [204, 404, 405];
    assert.ok(expected.includes(status) || method === 'HEAD', title);
    if (status === 405) assert.ok(valid(ERROR, JSON.parse(text || '{}')) || method === 'HEAD', title);
    return response;
  }
  const [type = ''] = (response.headers.get('content-type') ?? '').split(';');
  const schema = operation.responses[status]?.content?.[type]?.schema;
  assert.ok(schema, `not described: ${type} ${title}`);
  if (type === 'application/json') {
    const value = JSON.parse(text);
    assert.ok(valid(schema, value), `${title} ${ajv.errorsText(compiled.get(schema)?.errors)}`);
    // JSON-RPC has errors of its own, which the description has held already.
    if (status >= 400 && status !== 502 && 'error' in value && !('jsonrpc' in value))
      assert.ok(valid(ERROR, value), title);
  }
  return response;
}

/** Pages and well-known files are served, and are no operations. Bun's fetch collapses the slashes that a path begins with. */
function isAside(path: string, method: string): boolean {
  const { pathname } = new URL(`${service.url}${path.replace(/^\/+/, '/')}`);
  return Object.values(ROUTES).some(
    (route: RouteFacts) => !route.listed && route.method === method && route.path === pathname,
  );
}

function valid(schema: object, value: unknown): boolean {
  const check = compiled.get(schema) ?? ajv.compile(schema);
  compiled.set(schema, check);
  return check(value);
}

const urls = () =>
  fc.oneof(
    {
      arbitrary: fc
        .webPath({ size: 'small' })
        .map((path) => `https://target.test:${world.target.port}${path}`),
      weight: 4,
    },
    {
      arbitrary: fc.webUrl({ validSchemes: ['https'], withFragments: true, withQueryParameters: true }),
      weight: 2,
    },
    fc.string({ unit: 'grapheme' }).map((rest) => `https://${rest}`),
    fc.constantFrom(
      'https://',
      'https://a',
      'https:///',
      'https://[::1]/',
      'https://0x7f.1/',
      `https://a.example/${'x'.repeat(5000)}`,
    ),
  );

const bodies = (schema: JsonSchema): fc.Arbitrary<string | Uint8Array<ArrayBuffer>> =>
  fc.oneof(
    { arbitrary: nearly(schema, { strings: urls() }).map((value) => JSON.stringify(value)), weight: 10 },
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Uint8Array.from(bytes)),
    fc.json().map((text) => text.slice(0, -1)),
    fc.integer({ min: 60, max: 70 }).map((depth) => `{"body":${'['.repeat(depth)}${']'.repeat(depth)}}`),
    fc.constantFrom(
      '',
      'null',
      '[]',
      '\ufeff{}',
      '{"url":"https://a.example/","url":"https://b.example/"}',
      '{"url":"https://a.example/","body":"\\ud800"}',
      '{"url":"https://a.example/","body":1e400}',
      '{"url":"https://a.example/","body":12345678901234567890}',
      '{"__proto__":{"url":"https://a.example/"}}',
      '{"url":"https://a.example/","headers":{"__proto__":"x","constructor":"y"}}',
      JSON.stringify({ url: 'https://a.example/', body: 'x'.repeat(130 * 1024) }),
    ),
  );

const visible = fc.stringMatching(/^[\x20-\x7e]{0,200}$/).map((text) => text.trim());
const callerHeaders = fc
  .tuple(
    fc.oneof(
      { arbitrary: fc.constant('application/json'), weight: 12 },
      fc.constantFrom(
        'application/json; charset=utf-8',
        'application/json;charset=utf-16',
        'text/plain',
        'a/b',
      ),
      visible,
    ),
    fc.record(
      {
        'x-request-id': fc.oneof(visible, fc.stringMatching(/^[A-Za-z0-9._-]{1,200}$/)),
        'x-forwarded-for': visible,
        forwarded: visible,
        'idempotency-key': visible,
        accept: visible,
        'x-payment': visible,
        'payment-signature': visible,
        origin: visible,
      },
      { requiredKeys: [] },
    ),
  )
  .map(([type, more]) => ({ ...(type === '' ? {} : { 'content-type': type }), ...more }));

const ids = () =>
  fc.oneof(
    fc.constantFrom(known.job.id, known.receipt.id, known.job.id.toUpperCase(), `${known.job.id}x`),
    fc.stringMatching(/^(job|rcpt)_[0-9a-hjkmnp-tv-z]{26}$/),
    fc.string({ minLength: 1, unit: 'grapheme' }).map((text) => encodeURIComponent(text)),
    fc.constantFrom('%00', '%2e%2e', '%ff', '%', 'a%2Fb', "'%20or%201=1", '%F0%9F%92%A5', 'x'.repeat(3000)),
  );

const queries = (schema: JsonSchema): fc.Arbitrary<string> =>
  fc.oneof(
    fc.integer({ min: (schema.minimum ?? 0) - 2, max: (schema.maximum ?? 0) + 2 }).map(String),
    fc.constantFrom('', '1e3', '0x10', '+5', ' 5', '5.0', '-0', 'NaN', '9'.repeat(400), '%ff', '٣'),
    fc.string({ unit: 'grapheme' }).map((text) => encodeURIComponent(text)),
  );

/** Paths of an operation with its parameters filled in. */
function pathsOf(template: string, { parameters = [] }: Operation): fc.Arbitrary<string> {
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const pairs = fc.tuple(
    ...query.map(({ name, schema }) => fc.option(queries(schema).map((text) => `${name}=${text}`))),
  );
  return fc.tuple(ids(), pairs, fc.option(fc.webQueryParameters(), { freq: 10 })).map(([id, given, more]) => {
    const search = [...given, more].filter((part) => part !== null).join('&');
    return `${template.replace(/\{[^}]+\}/, id)}${search === '' ? '' : `?${search}`}`;
  });
}

describe('bad input', () => {
  before(async () => {
    world = await makeWorld({ handler: ({ number }) => ({ status: number % 5 === 0 ? 404 : 200 }) });
    world.dns.set('*', { rcode: 'NXDOMAIN' });
    world.dns.set('target.test', ['127.0.0.1']);
    service = await world.start();
    document = (await get<OpenApi>(`${service.url}/openapi.json`)).body;
    known = (await execute(service, { url: world.target.url() })).body;
  });
  after(() => world.end());

  test(`every described operation, ${RUNS} times each: a described answer, never 500`, async () => {
    const operations = Object.entries(document.paths).flatMap(([template, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        template,
        method: method.toUpperCase(),
        operation,
      })),
    );
    assert.ok(operations.length >= 12, `${operations.length} operations`);
    for (const { template, method, operation } of operations) {
      const schema = operation.requestBody?.content['application/json']?.schema;
      const calls = fc.record({
        path: pathsOf(template, operation),
        headers: callerHeaders,
        ...(schema === undefined ? {} : { body: bodies(schema) }),
      });
      const send = (call: Omit<Sent, 'method'>) =>
        sendAndJudge({ method, ...call }, described(call.path, method));
      await fc.assert(
        fc.asyncProperty(calls, async (call) => void (await send(call))),
        { numRuns: schema === undefined ? RUNS / 3 : 2 * RUNS },
      );
    }
    for (const status of ['200', '400', '404', '413', '415', '502']) {
      assert.ok((seen.get(status) ?? 0) > 0, `no answer was ${status}: ${JSON.stringify([...seen])}`);
    }
  });

  test('every path by every method: what is not described is 405 with Allow, or 404', async () => {
    for (const [template, methods] of Object.entries(document.paths)) {
      const path = template.replace(/\{[^}]+\}/, known.job.id);
      for (const method of METHODS) {
        if (method.toLowerCase() in methods) continue;
        const response = await sendAndJudge({ path, method }, undefined);
        if (response.status !== 405) continue;
        const allow = (response.headers.get('allow') ?? '').split(/, */);
        for (const described of Object.keys(methods))
          assert.ok(allow.includes(described.toUpperCase()), path);
      }
    }
  });

  test('undescribed paths: 404 for any content', async () => {
    const strange = fc.oneof(
      fc.webPath(),
      fc
        .array(
          fc.string({ unit: 'grapheme' }).map((text) => encodeURIComponent(text)),
          { maxLength: 6 },
        )
        .map((parts) => `/${parts.join('/')}`),
      ids().map((id) => `/api/${id}`),
    );
    await fc.assert(
      fc.asyncProperty(strange, fc.constantFrom(...METHODS.slice(0, 6)), async (path, method) => {
        const pathname = new URL(`${service.url}${path}`).pathname;
        if (described(pathname, method) !== undefined) return;
        await sendAndJudge({ path: pathname, method }, undefined);
      }),
      { numRuns: RUNS },
    );
  });

  test('the process still runs, and has logged no failure', async () => {
    assert.equal((await get(`${service.url}/health`)).status, 200);
    const { code, stdout, stderr } = await service.stop();
    assert.deepEqual([code, stderr], [0, '']);
    const failures = logLines(stdout).filter(({ level }) => level === 'error');
    assert.deepEqual(failures, []);
  });
});

/** The operation that a path and method belong to, as a router reads them. */
function described(path: string, method: string): Operation | undefined {
  const { pathname } = new URL(`${service.url}${path}`);
  const found = Object.entries(document.paths).find(([template]) =>
    new RegExp(`^${template.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`).test(pathname),
  );
  return found?.[1][method.toLowerCase()];
}
