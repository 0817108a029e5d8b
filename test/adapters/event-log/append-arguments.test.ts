import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkedAppend } from '#src/adapters/event-log/append-arguments.ts';
import type { ExpectedRevision, NewEvent } from '#src/ports/event-log.ts';
import { newEvent } from '#test/support/event-log-fixtures.ts';

test('an invalid append is refused before it reaches a store', () => {
  const event = newEvent();
  const refusals: [RegExp, string, ExpectedRevision, NewEvent[]][] = [
    [/a stream has a name/, '', 'no_stream', [event]],
    [/a revision is not negative/, 'a-1', -1n, [event]],
    [/at least one event/, 'a-1', 'no_stream', []],
    [/ids of their own/, 'a-1', 'no_stream', [event, newEvent(), { ...newEvent(), id: event.id }]],
    [/lower-case UUID/, 'a-1', 'no_stream', [{ ...event, id: 'event-1' }]],
    [/lower-case UUID/, 'a-1', 'no_stream', [{ ...event, id: 'ABCDEF00-0000-4000-8000-000000000000' }]],
    [/an event has a type/, 'a-1', 'no_stream', [{ ...event, type: '' }]],
  ];
  for (const [message, stream, expected, events] of refusals) {
    assert.throws(() => checkedAppend(stream, expected, events), { name: 'RangeError', message });
  }
});

test('a valid append has its events as JSON text, in order', () => {
  const events = [newEvent('First', { n: 1 }), { ...newEvent('Second'), metadata: { $correlationId: 'c' } }];
  assert.deepEqual(checkedAppend('a-1', 0n, events), [
    { id: events[0]?.id, type: 'First', data: '{"n":1}', metadata: '{}' },
    { id: events[1]?.id, type: 'Second', data: '{}', metadata: '{"$correlationId":"c"}' },
  ]);
});
