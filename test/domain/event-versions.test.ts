import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from '@sinclair/typebox';
import { decodeEvent, readerOf } from '#src/domain/event-codec.ts';
import { declareVersions, writtenAs } from '#src/domain/event-fields.ts';
import { newerKind, newerText, READ_VERSIONS } from '#src/domain/event-versions.ts';
import { EVENT_TYPES, EVENTS, event as eventOf } from '#src/domain/events.ts';
import { jobStarted } from '#test/support/given/given-events.ts';

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

test('one version of each type is written, and every other one that is read becomes that one', () => {
  for (const type of EVENT_TYPES) {
    const { versions, written, upcast } = EVENTS[type];
    const others = Object.keys(versions).filter((v) => Number(v) !== written);
    assert.ok(written in versions, type);
    assert.deepEqual(Object.keys(upcast), others, type);
  }
  const { v: _, ...facts } = jobStarted().data;
  assert.equal(eventOf('JobStarted', facts).data.v, EVENTS.JobStarted.written);
});

// A release that reads version 3 before the next one writes it.
const [at, owner, zone] = [Type.String(), Type.String(), Type.String()];
const Paused = declareVersions(
  'job',
  'at',
  { 1: { at }, 2: { at, owner }, 3: { at, owner, zone } },
  { 1: (recorded) => ({ ...recorded, owner: 'none' }), 3: ({ zone: _, ...recorded }) => recorded },
  2,
);

test('a version that is read before it is written: the one before is written, and all are read as that one', () => {
  const read = readerOf(Paused);
  const own = writtenAs(Paused, { at: 'noon', owner: 'this release' });
  assert.equal(own.v, 2);
  const stored = [
    { v: 1, at: 'noon' },
    own,
    { v: 3, at: 'noon', owner: 'the next release', zone: 'Europe/Berlin' },
  ];
  assert.deepEqual(stored.map(read), [
    { v: 2, at: 'noon', owner: 'none' },
    { v: 2, at: 'noon', owner: 'this release' },
    { v: 2, at: 'noon', owner: 'the next release' },
  ]);
  for (const data of [
    { v: 4, at: 'noon', owner: 'a later one' },
    { ...own, zone: 'of version 3' },
  ])
    assert.equal(read(data), null);
});
