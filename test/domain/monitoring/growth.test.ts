import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesPerDay, GROWTH_WINDOW_MS } from '#src/domain/monitoring/growth.ts';

const DAY = 86_400_000;
const NOW = 100 * DAY;
const stored = { bytes: 8_000_000, events: 1000, firstAt: 0, recentEvents: 70 };

test('the rate of the last 7 days, whatever was stored before', () => {
  assert.equal(GROWTH_WINDOW_MS, 7 * DAY);
  assert.equal(bytesPerDay(stored, NOW), 80_000);
  assert.equal(bytesPerDay({ ...stored, recentEvents: 0 }, NOW), 0);
});

test('a younger log: since its first event', () => {
  const young = { ...stored, firstAt: NOW - 2 * DAY, recentEvents: 1000 };
  assert.equal(bytesPerDay(young, NOW), 4_000_000);
});

test('within a day of its first event, or before it by this clock: not known', () => {
  for (const ageMs of [DAY - 1, 0, -DAY])
    assert.equal(bytesPerDay({ ...stored, firstAt: NOW - ageMs }, NOW), null);
  assert.equal(bytesPerDay({ ...stored, firstAt: NOW - DAY, recentEvents: 1000 }, NOW), 8_000_000);
});
