import assert from 'node:assert/strict';
import { test } from 'node:test';
import { steadyClock } from '#src/lib/steady-clock.ts';

const HOUR = 3_600_000;

function given() {
  let [wall, passed] = [1_000_000, 5];
  const clock = steadyClock({ now: () => wall, monotonic: () => passed }, 5000);
  return {
    clock,
    pass: (ms: number, wallMs = ms) => {
      passed += ms;
      wall += wallMs;
    },
    set: (ms: number) => {
      wall += ms;
    },
    wall: () => wall,
  };
}

test('a wall clock that does not jump is followed, also if the clocks drift apart over weeks', () => {
  const it = given();
  for (let hour = 0; hour < 1000; hour++) {
    it.pass(HOUR, HOUR + (hour % 2 === 0 ? 900 : -100));
    assert.equal(it.clock(), it.wall());
  }
});

test('set ahead by hours: the time continues without the jump, until the wall clock is set right', () => {
  const it = given();
  const before = it.clock();
  it.set(3 * HOUR);
  for (let minute = 1; minute <= 600; minute++) {
    it.pass(60_000);
    assert.equal(it.clock(), before + minute * 60_000);
  }
  it.set(-3 * HOUR + 200);
  assert.equal(it.clock(), it.wall());
});

test('set back, and ahead again to where it was: followed', () => {
  const it = given();
  it.set(-2 * HOUR);
  it.pass(1000);
  assert.equal(it.clock(), it.wall());
  it.set(2 * HOUR);
  assert.equal(it.clock(), it.wall());
  it.set(6000);
  assert.equal(it.clock(), it.wall() - 6000);
});
