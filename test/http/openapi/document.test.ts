import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { clientOf, withComponents } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const operations = [
  ['POST', '/api/execute/webhook', [200, 400, 402, 408, 409, 413, 415, 429, 500, 502, 503, 508]],
  ['POST', '/api/execute/guided-webhook', [200, 400, 402, 404, 408, 409, 413, 415, 429, 500, 502, 503, 508]],
  ['POST', '/api/decide/webhook', [200, 400, 408, 413, 415, 429, 500, 503]],
  ['GET', '/api/decisions/recent', [200, 400, 429, 500, 503]],
  ['GET', '/api/decisions/{id}', [200, 404, 429, 500, 503]],
  ['POST', '/api/policy/check', [200, 400, 408, 413, 415, 429, 500, 503]],
  ['GET', '/api/jobs/{id}', [200, 404, 429, 500, 503]],
  ['GET', '/api/receipts/{id}', [200, 404, 429, 500, 503]],
  ['GET', '/api/verify/jobs/{id}', [200, 404, 409, 429, 500, 503]],
  ['GET', '/api/verify/receipts/{id}', [200, 404, 429, 500, 503]],
  ['GET', '/api/proofs/recent', [200, 400, 429, 500, 503]],
  ['GET', '/proof/{jobOrReceiptId}', [200, 404, 429, 500, 503]],
  ['GET', '/api/monitoring/executions', [200, 400, 429, 500, 503]],
  ['GET', '/api/trust', [200, 429, 500, 503]],
  ['GET', '/api/actions', [200, 304, 429, 500]],
  ['GET', '/api/quickstart', [200, 304, 429, 500]],
  ['GET', '/api/pricing', [200, 304, 429, 500]],
  ['GET', '/api/capabilities', [200, 304, 429, 500]],
  ['GET', '/api/secrets/policy', [200, 304, 429, 500]],
  ['GET', '/api/snippets', [200, 304, 429, 500]],
  ['GET', '/api/handoff/capabilities', [200, 304, 429, 500]],
  ['GET', '/api/schedules/capabilities', [200, 304, 429, 500]],
  ['POST', '/api/handoff/browser', [200, 400, 408, 413, 415, 429, 500, 503]],
  ['POST', '/api/schedules/preview', [200, 400, 408, 413, 415, 429, 500, 503]],
  ['GET', '/api/canary/echo', [200, 429, 500, 503]],
  ['POST', '/api/canary/echo', [200, 400, 408, 413, 429, 500, 503]],
  ['POST', '/mcp', [200, 202, 400, 404, 406, 408, 413, 415, 429, 500, 503]],
  ['GET', '/health', [200, 400, 500, 503]],
  ['GET', '/openapi.json', [200, 304, 429, 500]],
  ['GET', '/api', [200, 304, 429, 500]],
  ['GET', '/api/discovery', [200, 304, 429, 500]],
  ['GET', '/api/errors', [200, 304, 429, 500]],
  ['GET', '/api/discovery-metadata', [200, 304, 429, 500]],
  ['GET', '/api/mcp', [200, 304, 429, 500]],
  ['GET', '/llms.txt', [200, 304, 429, 500]],
] as const;

test('the document is valid OpenAPI 3.1.0 of interface version 0.1.0', async () => {
  const document = await clientOf(fakeWorld()).document();
  const { valid, errors } = await new Validator().validate(structuredClone(document) as never);
  assert.ok(valid, JSON.stringify(errors));
  assert.equal(document.openapi, '3.1.0');
  assert.equal(document.info.version, '0.1.0');
});

test('it describes exactly the public operations, each with all its statuses and a description of each', async () => {
  const { paths } = await clientOf(fakeWorld()).document();
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]) => [
      method.toUpperCase(),
      path,
      Object.keys(responses).map(Number),
    ]),
  );
  const order = (rows: readonly (readonly unknown[])[]) => rows.map((row) => JSON.stringify(row)).sort();
  assert.deepEqual(order(described), order(operations));
  for (const methods of Object.values(paths)) {
    for (const { responses, operationId, security } of Object.values(methods)) {
      assert.match(
        operationId,
        /^(call|cancel|check|create|decide|execute|fund|get|list|post|preview|verify)[A-Z][A-Za-z]+$/,
      );
      assert.deepEqual(security, []);
      for (const { description } of Object.values(responses)) assert.ok(description.length > 4);
    }
  }
});

test('every schema in it compiles as JSON Schema 2020-12, and answers are closed', async () => {
  const document = await clientOf(fakeWorld()).document();
  const { paths, components } = document;
  const ajv = new Ajv2020({ strict: true, strictTypes: false, validateFormats: false });
  ajv.addVocabulary(['components', 'example']);
  let compiled = 0;
  for (const methods of Object.values(paths)) {
    for (const { parameters = [], requestBody, responses } of Object.values(methods)) {
      const contents = [requestBody, ...Object.values(responses)].flatMap((part) =>
        Object.values(part?.content ?? {}),
      );
      for (const { schema } of [...parameters, ...contents]) {
        ajv.compile(withComponents(schema, document));
        compiled += 1;
      }
    }
  }
  assert.ok(compiled > 60, `${compiled}`);
  const job = paths['/api/jobs/{id}']?.get?.responses['200']?.content?.['application/json']?.schema;
  assert.deepEqual(job, { $ref: '#/components/schemas/Job' });
  assert.equal((components.schemas.Job as { additionalProperties?: unknown }).additionalProperties, false);
});

test('the request schema in it is the one that is enforced', async () => {
  const client = clientOf(fakeWorld());
  const document = await client.document();
  const schema =
    document.paths['/api/execute/webhook']?.post?.requestBody?.content['application/json']?.schema;
  const check = new Ajv2020({ strict: false, validateFormats: false }).compile(
    withComponents(schema ?? {}, document),
  );
  const bodies = [
    { url: 'https://a.example/' },
    { url: 'https://a.example/', retry: { attempts: 3 } },
    { url: 'https://a.example/', retry: { attempts: 4 } },
    { url: 'https://a.example/', more: 1 },
    { url: 'https://a.example/', method: 'post' },
    { url: 'http://a.example/' },
    { url: 'https://a.example/', headers: { a: null } },
    [],
    {},
  ];
  for (const body of bodies) {
    const { status } = await client.post('/api/execute/webhook', body);
    assert.equal(status, check(body) ? 200 : 400, JSON.stringify(body));
  }
});

test('the paid operations state their price as configured and the body of a 402; free ones state neither', async () => {
  const world = fakeWorld({
    settings: { offer: { scheme: 'exact', network: 'eip155:84532', price: '$0.01' } },
  });
  const { paths, components } = await clientOf(world).document();
  const paid: string[] = [];
  for (const [path, methods] of Object.entries(paths)) {
    for (const { responses, ...operation } of Object.values(methods)) {
      const info = (operation as Record<string, unknown>)['x-payment-info'];
      const schema = responses['402']?.content?.['application/json']?.schema;
      assert.equal(info === undefined, schema === undefined, path);
      if (info === undefined) continue;
      paid.push(path);
      const price = { mode: 'fixed', currency: 'USD', amount: '0.01' };
      assert.deepEqual(info, { price, protocols: [{ x402: {} }] });
      assert.deepEqual(schema, { $ref: '#/components/schemas/PaymentRequired' });
    }
  }
  const { required } = components.schemas.PaymentRequired as { required?: string[] };
  assert.deepEqual(required, ['x402Version', 'error', 'accepts']);
  assert.deepEqual(paid.sort(), ['/api/execute/guided-webhook', '/api/execute/webhook']);
});

test('every named schema is referred to, every reference names one, and none is written twice', async () => {
  const { paths, components } = await clientOf(fakeWorld()).document();
  const text = JSON.stringify({ paths, components });
  const referred = new Set([...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name));
  assert.deepEqual([...referred].sort(), Object.keys(components.schemas).sort());
  for (const [name, schema] of Object.entries(components.schemas))
    assert.equal(text.split(JSON.stringify(schema)).length, 2, name);
});

test('an error that may say when to try again declares Retry-After', async () => {
  const { paths } = await clientOf(fakeWorld()).document();
  const declared = new Set<number>();
  for (const methods of Object.values(paths))
    for (const { responses } of Object.values(methods))
      for (const [status, response] of Object.entries(responses)) {
        const isDeclared = 'headers' in response && 'Retry-After' in (response.headers as object);
        if (isDeclared) declared.add(Number(status));
        if (status === '429') assert.ok(isDeclared);
      }
  assert.deepEqual([...declared].sort(), [409, 429, 503]);
});
