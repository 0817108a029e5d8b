import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeEvent, readEvent } from '#src/domain/event-codec.ts';
import { jobStarted } from '#test/support/given/given-events.ts';

const stored = (changes: object = {}) => JSON.parse(JSON.stringify({ ...jobStarted(), ...changes }));

test('a known event is decoded as it is', () => assert.deepEqual(decodeEvent(stored()), jobStarted()));

for (const [why, event] of [
  ['an unknown type', stored({ type: 'JobExploded' })],
  ['the name of a built-in object member', stored({ type: 'constructor' })],
  ['an unknown version', stored({ data: { ...stored().data, v: 9 } })],
  ['a missing field', stored({ data: { ...stored().data, jobId: undefined } })],
  ['a field too many', stored({ data: { ...stored().data, url: 'https://secret.example/' } })],
  ['a wrong shape inside', stored({ data: { ...stored().data, commitments: {} } })],
  [
    'an instant without milliseconds',
    stored({ data: { ...stored().data, startedAt: '2026-01-02T03:04:05Z' } }),
  ],
  ['no data', stored({ data: null })],
] as const) {
  test(`${why} is null`, () => assert.equal(decodeEvent(event), null));
}

test('readEvent equals decodeEvent, except for text that Postgres does not store', () => {
  assert.deepEqual(readEvent(stored()), jobStarted());
  assert.equal(readEvent(stored({ type: 'JobExploded' })), null);
  for (const text of ['nul \u0000', 'half \ud800', '\udc00 half']) {
    const { data } = stored();
    for (const changed of [
      { ...data, owner: text },
      { ...data, commitments: { ...data.commitments, target_url: text } },
    ]) {
      const decoded = decodeEvent(stored({ data: changed }));
      assert.equal(decoded === null, changed.owner !== text, 'a commitment is decoded only where it is one');
      assert.equal(readEvent(stored({ data: changed })), null);
    }
  }
  const whole = stored({ data: { ...stored().data, owner: 'whole \u{1f600}' } });
  assert.deepEqual(readEvent(whole), whole);
});
