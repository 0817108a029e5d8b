// The real service with a trace collector beside it: one tree per call; and a failing collector disturbs no call.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { logLines, type Service } from '#test/support/process/service.ts';
import {
  type CollectedSpan,
  startTraceCollector,
  type TraceCollector,
} from '#test/support/process/trace-collector.ts';
import { execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

let world: World;
let collector: TraceCollector;

before(async () => {
  world = await makeWorld({
    handler: ({ path, number }) => ({ status: path.includes('flaky') && number % 2 === 1 ? 503 : 200 }),
  });
  collector = await startTraceCollector();
});
after(async () => {
  await world.end();
  await collector.close();
});

/** A span with its children, ordered by start. */
type Tree = readonly [name: string, ...below: Tree[]];

const treeOf = (span: CollectedSpan, all: readonly CollectedSpan[]): Tree => [
  span.name,
  ...all.filter(({ parentId }) => parentId === span.spanId).map((below) => treeOf(below, all)),
];

describe('traces', () => {
  let service: Service;
  let spans: readonly CollectedSpan[];
  let jobId: string;
  const TRACEPARENT = `00-${'c0ffee00'.repeat(4)}-${'deadbeef'.repeat(2)}-01`;

  before(async () => {
    service = await world.start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, LOG_LEVEL: 'debug' });
    const body = { url: world.target.url('/flaky'), retry: { attempts: 2, backoffMs: 0 } };
    const { status, body: answer } = await execute(service, body, {
      traceparent: TRACEPARENT,
      tracestate: 'a=b',
    });
    assert.equal(status, 200);
    jobId = answer.job.id;
    await Promise.all([1, 2, 3].map(() => execute(service, { url: world.target.url('/good') })));
    await get(`${service.url}/nothing/here`);
    // A process exports its ended spans before it exits.
    assert.equal((await service.stop()).code, 0);
    spans = collector.spans();
  });

  test('each call is one trace with connected spans', () => {
    const roots = spans.filter(({ parentId }) => parentId === null);
    const calls = roots.filter(({ kind }) => kind === 2);
    const named = (name: string) => calls.filter((span) => span.name === name).length;
    assert.equal(named('POST /api/execute/webhook'), 4);
    assert.equal(named('GET'), 1);
    assert.equal(new Set(roots.map(({ traceId }) => traceId)).size, roots.length);
    const ids = new Map(spans.map((span) => [span.spanId, span]));
    for (const span of spans) {
      if (span.parentId !== null) assert.equal(ids.get(span.parentId)?.traceId, span.traceId, span.name);
    }
  });

  test('an execution has its DNS look-up, its appends and its attempts in one tree', () => {
    const mine = spans.find(({ facts }) => facts['relay.job.id'] === jobId);
    const trace = spans.filter(({ traceId }) => traceId === mine?.traceId);
    const root = trace.find(({ parentId }) => parentId === null) ?? assert.fail('no root');
    const [name, ...below] = treeOf(root, trace);
    assert.equal(name, 'POST /api/execute/webhook');
    assert.deepEqual(
      below.map(([child]) => child).filter((child) => child !== 'event_log.head'),
      ['dns', 'event_log.append', 'attempt', 'event_log.append', 'attempt', 'event_log.append'],
    );
    const facts = (child: string) => trace.filter((span) => span.name === child).map((span) => span.facts);
    assert.deepEqual(
      facts('attempt').map((span) => [span['relay.outcome'], span['http.response.status_code']]),
      [
        ['target_server_error', 503],
        ['succeeded', 200],
      ].map(([outcome, status]) => [outcome, status]),
    );
    assert.deepEqual(
      facts('event_log.append').map((span) => span['relay.event_log.types']),
      ['JobStarted', 'AttemptMade', 'AttemptMade JobCompleted ReceiptSigned'],
    );
    assert.deepEqual(
      facts('dns').map((span) => span['relay.outcome']),
      ['addresses'],
    );
    assert.equal(root.facts['service.name'], 'webhook-relay');
    assert.equal(root.facts['http.response.status_code'], 200);
  });

  test('a caller’s trace headers are ignored, and none are sent to the target', () => {
    const bytes = collector.bytes().toString('latin1').toLowerCase();
    for (const word of ['c0ffee00', 'deadbeef', world.target.url('/flaky'), 'target.test', '127.0.0.1:']) {
      assert.ok(!bytes.replaceAll(collector.url.slice(7), '').includes(word), word);
    }
    assert.ok(bytes.includes(jobId.toLowerCase()), 'the search would have seen it');
    for (const { headers } of world.target.requests) {
      assert.deepEqual([headers.traceparent, headers.tracestate], [undefined, undefined]);
    }
  });

  test('a log line names the trace of its call', () => {
    const line = logLines(service.stdout()).find(
      ({ msg, route, status }) => msg === 'request' && route === '/api/execute/webhook' && status === 200,
    );
    const traces = new Set(spans.map(({ traceId }) => traceId));
    assert.ok(typeof line?.traceId === 'string' && traces.has(line.traceId), JSON.stringify(line));
    assert.equal(logLines(service.stdout()).find(({ msg }) => msg === 'listening')?.traceId, undefined);
  });
});
