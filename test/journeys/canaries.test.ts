// Canary words in every place that a caller or a target can fill. They occur in the caller's own answer, and nowhere else.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { canaryFor, filesBelow, formsOf, wordsIn } from '#test/support/given/canaries.ts';
import { runCli } from '#test/support/process/cli.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';
import type { Ended, Service } from '#test/support/process/service.ts';
import { startTraceCollector, type TraceCollector } from '#test/support/process/trace-collector.ts';
import { opened } from '#test/support/world/service-receipts.ts';
import {
  type Answered,
  type ErrorBody,
  type Executed,
  execute,
  makeWorld,
  post,
  type World,
} from '#test/support/world/service-world.ts';

const PATH = canaryFor('path');
const QUERY = canaryFor('query');
const HOST = canaryFor('host');
const HEADER_NAME = canaryFor('headername');
const HEADER_VALUE = canaryFor('headervalue');
const STRIPPED = canaryFor('stripped');
const BODY_NAME = canaryFor('bodyname');
const BODY = canaryFor('body');
const KEY = canaryFor('key');
const CALLER = canaryFor('caller');
const RESPONSE_HEADER = canaryFor('responseheader');
const RESPONSE_BODY = canaryFor('responsebody');
const LOCATION = canaryFor('location');
const REFUSED = canaryFor('refused');
const UNKNOWN_NAME = canaryFor('unknownname');
const UNRESOLVED = canaryFor('unresolved');
const ALL = [
  PATH,
  QUERY,
  HOST,
  HEADER_NAME,
  HEADER_VALUE,
  STRIPPED,
  BODY_NAME,
  BODY,
  KEY,
  CALLER,
  RESPONSE_HEADER,
  RESPONSE_BODY,
  LOCATION,
  REFUSED,
  UNKNOWN_NAME,
  UNRESOLVED,
];

/** Headers of the caller's own request to the service, which must not be stored. */
const CALLER_HEADERS = {
  'user-agent': CALLER,
  cookie: `session=${CALLER}`,
  authorization: `Bearer ${CALLER}`,
  referer: `https://${CALLER}.example/`,
  'x-forwarded-for': CALLER,
  traceparent: CALLER,
  tracestate: `a=${CALLER}`,
  baggage: `b=${CALLER}`,
  // Not well-formed: not to be echoed.
  'x-request-id': `${CALLER} ${CALLER}`,
};

let world: World;
let service: Service;
let collector: TraceCollector;

const request = (outcome: string) => ({
  url: `https://${HOST}.target.test:${world.target.port}/${PATH}/${outcome}?${QUERY}=${QUERY}`,
  method: 'PATCH',
  headers: {
    [HEADER_NAME]: HEADER_VALUE,
    authorization: `Bearer ${HEADER_VALUE}`,
    connection: STRIPPED,
    [STRIPPED]: STRIPPED,
  },
  body: { [BODY_NAME]: BODY, deep: [{ [BODY_NAME]: BODY }] },
  idempotencyKey: `${KEY} ${outcome}`,
  // The first call of a process on a busy machine takes its time.
  timeoutMs: outcome === 'silent' ? 1000 : 12_000,
});

/** The outcomes of the executed calls. */
const OUTCOMES = ['good', 'bad', 'moved', 'broken', 'silent', 'elsewhere', 'closed'] as const;

/** A call that asks for the answer of its target, its replay, and a target that fails. */
const RETURNED = ['good', 'good', 'bad'] as const;

const executed: Answered<Executed & ErrorBody>[] = [];
const returned: Answered<Executed & ErrorBody & Returned>[] = [];
const refusals: Answered<ErrorBody>[] = [];
/** Of public endpoints. */
const published: (readonly [url: string, text: string])[] = [];
let ended: Ended;

type Returned = { readonly response?: { readonly body: string; readonly headers: Record<string, string> } };

async function executeAll(): Promise<void> {
  const nobodysPort = await fixedPort();
  for (const outcome of OUTCOMES) {
    const sent = request(outcome);
    // A name that the certificate does not have, and a port without a listener.
    if (outcome === 'elsewhere') sent.url = sent.url.replace('.target.test', '.elsewhere.example');
    if (outcome === 'closed') sent.url = sent.url.replace(`:${world.target.port}`, `:${nobodysPort}`);
    executed.push(await execute(service, sent, CALLER_HEADERS));
    executed.push(await execute(service, sent, CALLER_HEADERS));
  }
  const url = `${service.url}/api/execute/webhook`;
  for (const outcome of RETURNED) {
    const sent = { ...request(outcome), idempotencyKey: `${KEY} returned ${outcome}` };
    returned.push(await post(url, sent, { ...CALLER_HEADERS, prefer: 'return=representation' }));
  }
}

async function refuseAll(): Promise<void> {
  const routes = ['/api/execute/webhook', '/api/policy/check'].map((path) => `${service.url}${path}`);
  const good = request('refused');
  const bad: readonly unknown[] = [
    `{"url": "${REFUSED}`,
    `"${REFUSED}"`,
    `{"url":"https://a.example/","url":"https://${REFUSED}.example/"}`,
    { ...good, [UNKNOWN_NAME]: REFUSED },
    { ...good, retry: { [UNKNOWN_NAME]: REFUSED } },
    { ...good, method: REFUSED },
    { ...good, timeoutMs: REFUSED },
    { ...good, idempotencyKey: REFUSED.repeat(10) },
    { ...good, url: `http://${REFUSED}.example/` },
    { ...good, url: `https://${REFUSED}:${REFUSED}@target.test/` },
    { ...good, url: `https://10.0.0.1/${REFUSED}` },
    { ...good, url: `https://${REFUSED}.internal/${REFUSED}` },
    { ...good, url: `https://${UNRESOLVED}.nx.example/${REFUSED}` },
    { ...good, url: `https://${UNRESOLVED}.servfail.example/${REFUSED}` },
    { ...good, url: `https://${UNRESOLVED}.private.example/${REFUSED}` },
    { ...good, headers: { 'x-a': `${REFUSED}\r\nx-b: ${REFUSED}` } },
    { ...good, headers: { [`${UNKNOWN_NAME} `]: REFUSED } },
    { ...good, headers: { [UNKNOWN_NAME]: '1', [UNKNOWN_NAME.toUpperCase()]: '2' } },
    { ...good, body: REFUSED.repeat(10_000) },
    { ...request('good'), body: REFUSED },
  ];
  for (const body of bad) {
    for (const url of routes) refusals.push(await post<ErrorBody>(url, body, CALLER_HEADERS));
  }
  const [url = ''] = routes;
  refusals.push(await post<ErrorBody>(url, good, { ...CALLER_HEADERS, 'content-type': `text/${REFUSED}` }));
  for (const path of [
    `/${REFUSED}`,
    `/api/jobs/${REFUSED}`,
    `/api/receipts/${REFUSED}`,
    `/proof/${REFUSED}`,
  ]) {
    await fetch(`${service.url}${path}?q=${REFUSED}`, { headers: CALLER_HEADERS });
  }
  await fetch(`${service.url}/api/proofs/recent?limit=${REFUSED}`, { headers: CALLER_HEADERS });
}

async function readAll(): Promise<void> {
  const ids = [...executed, ...returned].flatMap(({ body }) => [body.job.id, body.receipt.id]);
  const paths = [
    ...[...new Set(ids)].flatMap((id) => [
      ...(id.startsWith('job_')
        ? [`/api/jobs/${id}`, `/api/verify/jobs/${id}`]
        : [`/api/receipts/${id}`, `/api/verify/receipts/${id}`]),
      `/proof/${id}`,
      `/proof/${id}/badge.svg`,
    ]),
    '/api/proofs/recent?limit=50',
    '/api/monitoring/executions',
    '/api/trust',
    '/openapi.json',
    '/health',
    '/health/live',
    '/metrics',
    '/.well-known/jwks.json',
  ];
  for (const path of paths) {
    const response = await fetch(`${service.url}${path}`);
    assert.equal(response.status, 200, path);
    published.push([path, `${JSON.stringify([...response.headers])}\n${await response.text()}`]);
  }
}

describe('canaries', () => {
  before(async () => {
    world = await makeWorld({
      embedded: true,
      handler({ path }, socket) {
        const headers = {
          [RESPONSE_HEADER]: RESPONSE_HEADER,
          'set-cookie': `a=${RESPONSE_HEADER}`,
          location: `https://${LOCATION}.example/`,
        };
        if (path.includes('/silent')) return new Promise<undefined>(() => undefined);
        if (path.includes('/broken')) {
          socket.end(`HTTP/1.1 200 ${RESPONSE_HEADER}\r\ncontent-length: 999\r\n\r\n${RESPONSE_BODY}`);
          return undefined;
        }
        const status = path.includes('/bad') ? 500 : path.includes('/moved') ? 302 : 200;
        return { status, headers, body: RESPONSE_BODY };
      },
    });
    world.dns.set(`${UNRESOLVED}.nx.example`, { rcode: 'NXDOMAIN' });
    world.dns.set(`${UNRESOLVED}.servfail.example`, { rcode: 'SERVFAIL' });
    world.dns.set(`${UNRESOLVED}.private.example`, ['10.1.2.3']);
    collector = await startTraceCollector();
    service = await world.start({ LOG_LEVEL: 'debug', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await executeAll();
    await refuseAll();
    await readAll();
  });
  after(async () => {
    await world.end();
    await collector.close();
  });

  test('the search finds a word in every encoding', () => {
    for (const form of formsOf(BODY)) {
      assert.deepEqual(wordsIn(ALL, Buffer.concat([Buffer.from('?'), form, Buffer.from('?')])), [BODY]);
    }
    for (const lead of ['', 'a', 'ab', 'abc']) {
      const hidden = Buffer.from(`${lead}${BODY}${lead}`).toString('base64url');
      assert.deepEqual(wordsIn(ALL, `x.${hidden}.y`), [BODY]);
    }
  });

  test('every call ended as intended, and the words were sent', () => {
    const contained = executed.map(({ status, body }) => [
      status,
      body.job?.errorCategory,
      body.idempotentReplay,
    ]);
    const outcomes = [
      [200, null],
      [502, 'target_server_error'],
      [502, 'target_redirect'],
      [502, 'truncated_response'],
      [502, 'timeout'],
      [502, 'tls_error'],
      [502, 'connect_error'],
    ];
    assert.deepEqual(
      contained,
      outcomes.flatMap((outcome) => [false, true].map((replay) => [...outcome, replay])),
    );
    const [first] = world.target.requests;
    const sent = Buffer.concat([Buffer.from(first?.head ?? ''), first?.body ?? Buffer.alloc(0)]);
    assert.deepEqual(wordsIn(ALL, sent), [PATH, QUERY, HOST, HEADER_NAME, HEADER_VALUE, BODY_NAME, BODY]);
    assert.equal(world.target.requests.length, 5 + 2);
  });

  test("the caller's own answer opens what the caller sent, in its disclosures alone", () => {
    for (const { headers, body } of executed) {
      const { disclosures, ...rest } = body;
      assert.deepEqual(wordsIn(ALL, JSON.stringify([rest, [...headers]])), []);
      const contained = wordsIn(ALL, JSON.stringify([...opened(disclosures)]));
      assert.deepEqual(contained, [PATH, QUERY, HOST, HEADER_NAME, STRIPPED, KEY]);
    }
  });

  test('the first answer to a caller that asks has the body of the target, and no header that was not to be returned', () => {
    const contained = returned.map(({ status, headers, body: { response, disclosures: _, ...rest } }) => {
      assert.deepEqual(wordsIn(ALL, JSON.stringify([rest, [...headers]])), []);
      return [
        status,
        rest.idempotentReplay,
        response?.headers,
        wordsIn(ALL, JSON.stringify(response ?? null)),
      ];
    });
    assert.deepEqual(contained, [
      [200, false, { 'content-type': 'application/json' }, [RESPONSE_BODY]],
      [200, true, undefined, []],
      [502, false, { 'content-type': 'application/json' }, [RESPONSE_BODY]],
    ]);
  });

  test('refusals repeat no value: at most names of unknown properties, and the URL of a policy check', () => {
    assert.ok(refusals.length >= 41);
    for (const { status, headers, body } of refusals) {
      assert.ok([200, 400, 409, 413, 415].includes(status), `${status} ${JSON.stringify(body)}`);
      assert.deepEqual(wordsIn(ALL, JSON.stringify([...headers])), []);
      if (status === 200) continue;
      assert.deepEqual(wordsIn(ALL, body.error.message), []);
      const contained = wordsIn(ALL, JSON.stringify(body));
      assert.deepEqual(
        contained.filter((found) => found !== UNKNOWN_NAME),
        [],
        JSON.stringify(body),
      );
    }
  });

  test('public answers contain none of them', () => {
    assert.ok(published.length > 60, `${published.length}`);
    for (const [path, text] of published) assert.deepEqual(wordsIn(ALL, text), [], path);
  });

  test('no file of the data directory contains any, while the service runs and after it has stopped', async () => {
    const assertClean = () => {
      const files = filesBelow(world.dataDir);
      assert.ok(files.some(([path]) => path.endsWith('events.db')) && files.length > 20, `${files.length}`);
      for (const [path, bytes] of files) assert.deepEqual(wordsIn(ALL, bytes), [], path);
    };
    assertClean();
    ended = await service.stop();
    assertClean();
    // The search works: it finds the ids of the jobs.
    const id = returned[0]?.body.job.id ?? '';
    assert.ok(filesBelow(world.dataDir).some(([, bytes]) => bytes.includes(id)));
  });

  test('no export of the log contains any', async () => {
    const file = join(world.folder, 'export.ndjson');
    const { code, stderr } = await runCli(['export', '--out', file], { env: { DATA_DIR: world.dataDir } });
    assert.equal(code, 0, stderr);
    const written = readFileSync(file);
    assert.deepEqual(wordsIn(ALL, written), []);
    assert.ok(written.includes(returned[0]?.body.job.id ?? '?'));
  });

  test('no log line contains any', () => {
    assert.equal(ended.code, 0);
    assert.deepEqual(wordsIn(ALL, ended.stdout), []);
    assert.equal(ended.stderr, '');
    // The log contains every request, at the most detailed level.
    assert.ok(ended.stdout.split('"msg":"request"').length > 80);
  });

  test('no data for the trace collector contains any', () => {
    assert.ok(collector.spans().length > 100, `${collector.spans().length}`);
    assert.deepEqual(wordsIn(ALL, collector.bytes()), []);
    // The search works: it finds the ids of the jobs.
    assert.ok(collector.bytes().includes(returned[0]?.body.job.id ?? '?'));
  });
});
