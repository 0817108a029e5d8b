// When runs are due, and what may follow what in a schedule's stream.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import type { ScheduleEvent } from '#src/domain/events.ts';
import {
  checkedSchedule,
  dueAfter,
  dueNext,
  type PaidSchedule,
  ScheduleRequest,
} from '#src/domain/schedule/plan.ts';
import { absentSchedule, evolveSchedule, type Schedule } from '#src/domain/schedule/state.ts';
// Registers the format of a URL.
import '#src/http/request/validation.ts';
import {
  at,
  OTHER_JOB_ID,
  runFunded,
  runSkipped,
  runStarted,
  scheduleCancelled,
  scheduleDefined,
  schedulePaused,
} from '#test/support/given/given-events.ts';

const calendar = temporalCalendar();
const ms = (text: string) => Date.parse(text);
const runs = (schedule: PaidSchedule, from: string, count: number): string[] => {
  const found: string[] = [];
  let due = dueAfter(schedule, ms(from), calendar);
  for (; due !== null && found.length < count; due = dueNext(schedule, due, calendar))
    found.push(new Date(due).toISOString());
  return found;
};

test('once: its instant, if that is later', () => {
  const once = { type: 'once', runAt: '2026-03-01T09:00:00+01:00' } as const;
  assert.deepEqual(runs(once, '2026-02-01T00:00:00Z', 3), ['2026-03-01T08:00:00.000Z']);
  assert.deepEqual(runs(once, '2026-03-01T08:00:00Z', 3), []);
});

test('daily: at its local time, across the change of clocks', () => {
  const daily = { type: 'daily', timeOfDay: '09:00', timezone: 'Europe/Berlin' } as const;
  assert.deepEqual(runs(daily, '2026-03-27T09:00:00Z', 3), [
    '2026-03-28T08:00:00.000Z',
    '2026-03-29T07:00:00.000Z',
    '2026-03-30T07:00:00.000Z',
  ]);
});

test('weekly: on its days in its zone', () => {
  const weekly = {
    type: 'weekly',
    daysOfWeek: ['monday', 'thursday'],
    timeOfDay: '00:30',
    timezone: 'Asia/Tokyo',
  } as const satisfies PaidSchedule;
  // Monday 00:30 in Tokyo is Sunday in UTC. 2026-01-05 is a Monday.
  assert.deepEqual(runs(weekly as unknown as PaidSchedule, '2026-01-04T00:00:00Z', 3), [
    '2026-01-04T15:30:00.000Z',
    '2026-01-07T15:30:00.000Z',
    '2026-01-11T15:30:00.000Z',
  ]);
});

test('interval: from its start in equal steps, also if the start has passed', () => {
  const interval = { type: 'interval', everyMinutes: 90, startAt: '2026-01-01T00:00:00Z' } as const;
  assert.deepEqual(runs(interval, '2025-12-31T00:00:00Z', 2), [
    '2026-01-01T00:00:00.000Z',
    '2026-01-01T01:30:00.000Z',
  ]);
  assert.deepEqual(runs(interval, '2026-01-01T03:00:00Z', 1), ['2026-01-01T04:30:00.000Z']);
});

test('runs are at least a minute apart', () => {
  const minutely = { type: 'interval', everyMinutes: 1, startAt: '2026-01-01T00:00:00Z' } as const;
  const [a = '', b = ''] = runs(minutely, '2026-01-01T00:00:00Z', 2);
  assert.equal(ms(b) - ms(a), 60_000);
});

test('what no schema refuses: zones and instants', () => {
  const zone = { type: 'daily', timeOfDay: '09:00', timezone: 'europe/berlin' } as const;
  assert.deepEqual(checkedSchedule(zone, calendar), { ...zone, timezone: 'Europe/Berlin' });
  assert.ok('kind' in checkedSchedule({ ...zone, timezone: 'Mars/Olympus' }, calendar));
  assert.ok('kind' in checkedSchedule({ type: 'once', runAt: 'tomorrow' }, calendar));
});

test('bounds of the request', () => {
  const webhook = { url: 'https://a.example/' };
  const startAt = '2026-01-01T00:00:00Z';
  const fits = (schedule: unknown, more: object = {}) =>
    Value.Check(ScheduleRequest, { webhook, schedule, ...more });
  assert.equal(fits({ type: 'interval', everyMinutes: 1, startAt }), true);
  assert.equal(fits({ type: 'interval', everyMinutes: 0, startAt }), false);
  assert.equal(fits({ type: 'interval', everyMinutes: 10_081, startAt }), false);
  assert.equal(fits({ type: 'weekly', daysOfWeek: [], timeOfDay: '09:00', timezone: 'UTC' }), false);
  assert.equal(fits({ type: 'interval', everyMinutes: 1, startAt }, { catchUpSeconds: 3601 }), false);
});

const fold = (...events: readonly ScheduleEvent[]) => events.reduce<Schedule>(evolveSchedule, absentSchedule);

test('a run starts once, with the job that was planned for it, and not after the cancellation', () => {
  const funded = fold(scheduleDefined(), runFunded());
  const started = evolveSchedule(funded, runStarted());
  assert.notEqual(started, funded);
  assert.equal(evolveSchedule(started, runStarted()), started);
  assert.equal(evolveSchedule(funded, runStarted({ jobId: OTHER_JOB_ID })), funded);
  const cancelled = evolveSchedule(funded, scheduleCancelled());
  assert.equal(evolveSchedule(cancelled, runStarted()), cancelled);
  assert.equal(evolveSchedule(cancelled, scheduleCancelled()), cancelled);
});

test('a run that was skipped does not start; one that has started does not move', () => {
  const skipped = fold(scheduleDefined(), runFunded(), runSkipped());
  assert.equal(evolveSchedule(skipped, runStarted()), skipped);
  const started = fold(scheduleDefined(), runFunded(), runStarted());
  const moved = runSkipped({ movedTo: { run: 2, dueAt: at(660_000) } });
  assert.equal(evolveSchedule(started, moved), started);
});

test('only the first run without a payment is funded, and a paused schedule is active again then', () => {
  const defined = fold(scheduleDefined());
  assert.equal(evolveSchedule(defined, runFunded({ run: 2 })), defined);
  const paused = fold(scheduleDefined(), schedulePaused());
  assert.equal(paused.status, 'paused');
  assert.equal(evolveSchedule(paused, runFunded()).status, 'active');
});
