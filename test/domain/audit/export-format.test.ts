// The lines of an export: the parser accepts exactly the written form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  damageLine,
  endLine,
  eventLine,
  headLine,
  parseHead,
  parseLine,
} from '#src/domain/audit/export-format.ts';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import { DAMAGE_PROBLEMS, type Damage } from '#src/domain/damage.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';

const event: RecordedEvent = {
  position: '00000000000000000007',
  stream: 'job-job_1',
  revision: 3n,
  type: 'Anything',
  id: '00000000-0000-4000-8000-000000000007',
  created: '2026-01-02T03:04:05.678Z',
  data: { a: 1, b: [null, 'ü'] },
  metadata: {},
};
const line = eventLine(event);

test('any event is read as it was written', () => {
  const object = fc.object({ withNullPrototype: false, maxDepth: 3 });
  const json = object.map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);
  fc.assert(
    fc.property(json, json, fc.string({ minLength: 1 }), fc.bigInt(0n, 2n ** 63n - 1n), (...parts) => {
      const [data, metadata, stream, revision] = parts;
      const any = { ...event, data, metadata, stream, revision };
      assert.deepEqual(parseLine(eventLine(any)), { kind: 'event', event: any });
    }),
  );
});

test('head and end are read as they were written', () => {
  for (const head of [
    { origin: null, from: null },
    { origin: 'relay.example/receipts', from: event.position },
  ]) {
    assert.deepEqual(parseHead(headLine(head)), head);
  }
  for (const end of [
    { events: 0, streams: 0, head: null },
    { events: 9, streams: 2, head: event.position },
  ]) {
    assert.deepEqual(parseLine(endLine(end)), { kind: 'end', end });
  }
});

test('damage is read as it was written', () => {
  const { position: from } = event;
  for (const problem of DAMAGE_PROBLEMS)
    for (const named of [
      { stream: 'job-job_1', revision: '3' },
      { stream: null, revision: null },
    ]) {
      const damage: Damage = { from, to: from, ...named, problem };
      assert.deepEqual(parseLine(damageLine(damage)), { kind: 'damaged', damage });
      for (const text of [damageLine(damage).replace('true', 'false'), ` ${damageLine(damage)}`])
        assert.equal(parseLine(text).kind, 'wrong', text);
    }
});

const HEAD = headLine({ origin: null, from: null });
for (const [what, text] of Object.entries({
  'another format': HEAD.replace('/1', '/2'),
  'a member more': HEAD.replace('}', ',"x":1}'),
  'white space': ` ${HEAD}`,
  'another order': '{"origin":null,"format":"relay-export/1","from":null}',
  'no JSON': HEAD.slice(1),
})) {
  test(`no head: ${what}`, () => assert.equal(parseHead(text), null));
}

const NOT_CANONICAL = 'it is not in the canonical form of an export';
const NEITHER = 'it is neither an event nor the end of an export';
for (const [what, text, problem] of [
  ['a name twice', line.replace('"a":1', '"a":2,"a":1'), NOT_CANONICAL],
  ['white space', line.replace(':', ': '), NOT_CANONICAL],
  [
    'another order',
    line.replace('"data":{"a":1,"b":[null,"ü"]},"metadata":{}', '"metadata":{},"data":{}'),
    NOT_CANONICAL,
  ],
  ['another form of a number', line.replace('"a":1', '"a":1.0'), NOT_CANONICAL],
  ['an end with white space', `${endLine({ events: 1, streams: 1, head: null })} `, NOT_CANONICAL],
  ['a member more', line.replace('{', '{"x":1,'), NEITHER],
  ['a member less', line.replace(',"metadata":{}', ''), NEITHER],
  ['data that is a list', line.replace('"metadata":{}', '"metadata":[]'), NEITHER],
  ['a revision with a zero before it', line.replace('"3"', '"03"'), NEITHER],
  ['a negative revision', line.replace('"3"', '"-3"'), NEITHER],
  ['a revision that is a number', line.replace('"3"', '3'), NEITHER],
  ['an id in upper case', line.replace(event.id, 'A0000000-0000-4000-8000-000000000007'), NEITHER],
  ['an end that is not true', '{"end":1,"events":0,"streams":0,"head":null}', NEITHER],
  ['a negative count', '{"end":true,"events":-1,"streams":0,"head":null}', NEITHER],
  ['a list', '[]', NEITHER],
  ['nothing', '', 'it is not JSON'],
  ['half a line', line.slice(0, -1), 'it is not JSON'],
  ['JSON nested too deep', `${'['.repeat(200_000)}`, 'it is not JSON'],
] as const) {
  test(`no line: ${what}`, () => {
    const read = parseLine(text);
    assert.deepEqual([read.kind, 'problem' in read && read.problem], ['wrong', problem]);
  });
}

test('a wrong line reports the stream and revision that it names', () => {
  const read = parseLine(line.replace(':', ': '));
  assert.deepEqual(read, { kind: 'wrong', problem: NOT_CANONICAL, stream: event.stream, revision: '3' });
});
