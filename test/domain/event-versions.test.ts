import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeEvent } from '#src/domain/event-codec.ts';
import { newerKind, newerText, READ_VERSIONS } from '#src/domain/event-versions.ts';
import { EVENT_TYPES } from '#src/domain/events.ts';
import { jobStarted } from '#test/support/given-events.ts';

const stored = (changes: object = {}) => JSON.parse(JSON.stringify({ ...jobStarted(), ...changes }));
const versioned = (v: unknown) => stored({ data: { ...stored().data, v } });

test('an unknown type or a higher version is of a newer release, and its name is text', () => {
  for (const [event, text] of [
    [versioned(99), 'JobStarted version 99'],
    [stored({ type: 'JobPaused', data: { v: 1 } }), 'JobPaused version 1'],
    [stored({ type: 'constructor', data: { v: 1 } }), 'constructor version 1'],
  ]) {
    assert.equal(decodeEvent(event), null);
    const kind = newerKind(event);
    assert.equal(kind && newerText(kind), text);
  }
});

test('what this release reads, and what no release has written, is of no newer release', () => {
  const malformed = [stored({ data: null }), stored({ type: 'JobPaused', data: {} })];
  for (const event of [stored(), ...[1, 0, -1, 9.5, '9', undefined].map(versioned), ...malformed])
    assert.equal(newerKind(event), null);
});

test('all types are listed with all of their versions', () => {
  const listed = READ_VERSIONS.split(' ');
  assert.equal(listed.length, EVENT_TYPES.length);
  assert.ok(listed.includes('JobStarted:1,2'));
});
