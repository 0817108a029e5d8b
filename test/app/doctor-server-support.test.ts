import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventStoreSupport, postgresSupport } from '#src/app/doctor/server-support.ts';

const on = (day: string) => Date.parse(`${day}T12:00:00Z`);

test('a line is supported to the last day that its maker names', () => {
  assert.equal(postgresSupport('14.20', on('2026-11-12')), 'supported');
  assert.equal(postgresSupport('14.20', on('2026-11-13')), 'ended');
  assert.equal(postgresSupport('17.2 (Debian 17.2-1)', on('2026-11-28')), 'supported');
  assert.equal(eventStoreSupport('23.10.6', on('2026-11-28')), 'ended');
  assert.equal(eventStoreSupport('24.10.4', on('2026-11-28')), 'ended');
  assert.equal(eventStoreSupport('26.0.1.5', on('2026-11-28')), 'supported');
});

test('a line that this release does not know is unknown', () => {
  assert.equal(postgresSupport('99.1', on('2026-11-28')), 'unknown');
  assert.equal(eventStoreSupport('unknown', on('2026-11-28')), 'unknown');
});
