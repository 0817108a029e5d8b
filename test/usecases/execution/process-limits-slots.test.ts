import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inFlightSlots, type Release } from '#src/usecases/execution/process-limits.ts';

type Taken = ReturnType<ReturnType<typeof inFlightSlots>['take']>;

function given(slot: Taken): Release {
  assert.ok(typeof slot === 'function');
  return slot;
}
function assertFull(slot: Taken): void {
  assert.ok(typeof slot !== 'function');
  assert.deepEqual([slot.refused, slot.retryAfterSeconds], ['too_many_in_flight', 1]);
}

test('too_many_in_flight: as many as there are, over all payers; one given back is one to take', () => {
  const slots = inFlightSlots(2);
  const first = given(slots.take('a', null));
  given(slots.take('b', null));
  assertFull(slots.take('c', null));
  assert.equal(slots.inFlight(), 2);
  first();
  given(slots.take('c', null));
  assertFull(slots.take('a', null));
});

test('too_many_in_flight: as many as a payer may, while others still may', () => {
  const slots = inFlightSlots(10);
  const own = [given(slots.take('a', 2)), given(slots.take('a', 2))];
  assertFull(slots.take('a', 2));
  given(slots.take('b', 2));
  given(slots.take('a', null));
  for (const slot of own) slot();
  given(slots.take('a', 2));
  assertFull(slots.take('a', 2));
});

test('a slot given back twice is one slot', () => {
  const slots = inFlightSlots(2);
  const first = given(slots.take('a', 1));
  given(slots.take('b', 1));
  first();
  first();
  assert.equal(slots.inFlight(), 1);
  given(slots.take('a', 1));
  assertFull(slots.take('a', 1));
});

test('a refused take holds nothing', () => {
  const slots = inFlightSlots(1);
  const only = given(slots.take('a', 1));
  for (let i = 0; i < 5; i++) assertFull(slots.take('a', 1));
  only();
  assert.equal(slots.inFlight(), 0);
  given(slots.take('a', 1));
});

test('calls leave a place to runs, and have all others while a run has it', () => {
  const slots = inFlightSlots(2, { forRuns: 1 });
  const call = given(slots.take('a', null));
  assertFull(slots.take('b', null));
  const run = given(slots.take('c', null, 'runs'));
  assertFull(slots.take('d', null, 'runs'));
  call();
  given(slots.take('b', null))();
  run();
  assert.equal(slots.inFlight(), 0);
});
