// Spans from the tracer to a collector on loopback: who stands below whom, and what a collector that fails may not do.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { otlpTracer } from '#src/adapters/telemetry/otlp.ts';
import type { Tracer } from '#src/ports/telemetry.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';
import { waitFor } from '#test/support/process/service.ts';
import { startTraceCollector, type TraceCollector } from '#test/support/process/trace-collector.ts';

const service = { name: 'relay-test', version: '9.9.9', instance: 'one' };
const turn = () => new Promise((resolve) => setTimeout(resolve, 1));

let collector: TraceCollector;
let fates: boolean[];

const openTracer = (endpoint = collector.url): Tracer =>
  otlpTracer({
    endpoint,
    service,
    clock: systemClock(),
    exported: (failure) => void fates.push(failure === null),
  });

before(async () => {
  collector = await startTraceCollector();
});
beforeEach(() => {
  fates = [];
  collector.behave('take');
});
after(() => collector.close());

describe('traces: a collector that takes them', () => {
  test('what is started below a span stands below it, also across waits and beside others', async () => {
    const tracer = openTracer(`${collector.url}/`);
    const seen = collector.spans().length;
    const branch = (name: string) =>
      tracer.within(name, 'internal', async () => {
        await turn();
        await tracer.within(`${name}.leaf`, 'client', turn);
        return tracer.traceId();
      });
    const one = tracer.within('root', 'server', async (span) => {
      span.rename('renamed');
      span.setAttributes({ text: 'a', number: 1.5, flag: true, nothing: null });
      const ids = await Promise.all([branch('left'), branch('right')]);
      assert.deepEqual(ids, [tracer.traceId(), tracer.traceId()]);
      return ids[0];
    });
    const [first, second] = await Promise.all([one, branch('other')]);
    assert.equal(tracer.traceId(), null, 'outside there is no trace');
    assert.match(first ?? '', /^[0-9a-f]{32}$/);
    assert.notEqual(first, second);
    await tracer.close();

    const spans = collector.spans().slice(seen);
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const shown = spans.map(({ name, kind, traceId, parentId }) => [
      name,
      kind,
      traceId === first ? 'first' : traceId === second ? 'second' : 'none',
      parentId === null ? null : byId.get(parentId)?.name,
    ]);
    assert.deepEqual(shown.sort(), [
      ['left', 1, 'first', 'renamed'],
      ['left.leaf', 3, 'first', 'left'],
      ['other', 1, 'second', null],
      ['other.leaf', 3, 'second', 'other'],
      ['renamed', 2, 'first', null],
      ['right', 1, 'first', 'renamed'],
      ['right.leaf', 3, 'first', 'right'],
    ]);
    const root = spans.find(({ name }) => name === 'renamed');
    assert.deepEqual(root?.facts, {
      'service.name': 'relay-test',
      'service.version': '9.9.9',
      'service.instance.id': 'one',
      text: 'a',
      number: 1.5,
      flag: true,
    });
    assert.deepEqual(fates, [true]);
  });

  test('an error of the work is rethrown, and the span reports the failure without its message', async () => {
    const tracer = openTracer();
    const seen = collector.spans().length;
    const error = new TypeError('a secret');
    const thrown = tracer.within('throws', 'internal', async () => {
      throw error;
    });
    await assert.rejects(thrown, (caught) => caught === error);
    await tracer.within('fails', 'internal', async (span) => span.fail());
    await tracer.within('works', 'internal', turn);
    await tracer.close();
    const spans = collector.spans().slice(seen);
    assert.deepEqual(
      spans.map(({ name, failed }) => [name, failed]),
      [
        ['throws', true],
        ['fails', true],
        ['works', false],
      ],
    );
    for (const word of ['secret', 'TypeError', 'stack']) assert.ok(!collector.bytes().includes(word), word);
  });
});

describe('traces: a collector that does not', () => {
  const traceMany = async (tracer: Tracer, count: number) => {
    for (let i = 0; i < count; i++) await tracer.within('span', 'internal', async () => undefined);
  };

  test('one that refuses loses what was sent, and nothing else happens', async () => {
    const tracer = openTracer();
    collector.behave('refuse');
    await traceMany(tracer, 3);
    await tracer.close();
    assert.deepEqual(fates, [false]);
  });

  test('one that hangs: closing ends', async () => {
    const slept: number[] = [];
    const tracer = otlpTracer({
      endpoint: collector.url,
      service,
      // The wait at the end passes at once; what is real are the spans and the collector.
      clock: { sleep: async (ms) => void slept.push(ms) },
      exported: (failure) => void fates.push(failure === null),
    });
    collector.behave('hang');
    const before = collector.calls();
    await traceMany(tracer, 6000);
    await tracer.close();
    assert.ok(!fates.includes(true));
    assert.deepEqual(slept, [2000]);
    await waitFor('the collector was asked', () => collector.calls() > before);
  });

  test('an unavailable collector loses spans, and closing ends', async () => {
    const tracer = otlpTracer({
      endpoint: `http://127.0.0.1:${await fixedPort()}`,
      service,
      clock: { sleep: async () => undefined },
      exported: (failure) => void fates.push(failure === null),
    });
    await traceMany(tracer, 5000);
    await tracer.close();
    assert.ok(!fates.includes(true));
  });
});
