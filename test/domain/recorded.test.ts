import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeEvent } from '#src/domain/recorded.ts';
import { jobStarted } from '#test/support/given-events.ts';

const stored = (changes: object = {}) => JSON.parse(JSON.stringify({ ...jobStarted(), ...changes }));

test('a known event is decoded as it is', () => assert.deepEqual(decodeEvent(stored()), jobStarted()));

for (const [why, event] of [
  ['an unknown type', stored({ type: 'JobExploded' })],
  ['a name that every object has', stored({ type: 'constructor' })],
  ['an unknown version', stored({ data: { ...stored().data, v: 2 } })],
  ['a missing field', stored({ data: { ...stored().data, jobId: undefined } })],
  ['a field too many', stored({ data: { ...stored().data, url: 'https://secret.example/' } })],
  ['a wrong shape inside', stored({ data: { ...stored().data, commitments: {} } })],
  [
    'an instant without milliseconds',
    stored({ data: { ...stored().data, startedAt: '2026-01-02T03:04:05Z' } }),
  ],
  ['no data', stored({ data: null })],
] as const) {
  test(`${why} is null, never a guess`, () => assert.equal(decodeEvent(event), null));
}
