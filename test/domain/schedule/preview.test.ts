import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import type { Calendar } from '#src/domain/schedule/calendar.ts';
import { previewOf } from '#src/domain/schedule/preview.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const DAY = 86_400_000;

/** Knows one zone, whose clocks never change until a test says so. */
const calendar = (changes: Partial<Calendar> = {}): Calendar => ({
  findInstant: (text) => temporalCalendar().findInstant(text),
  findZone: (name) => (name.toLowerCase() === 'utc' ? 'UTC' : null),
  dayOf: (instant) => Math.floor(instant / DAY),
  instantOf: (day, minute) => day * DAY + minute * 60_000,
  ...changes,
});

const daily = (timeOfDay: string, timezone = 'utc') => ({ type: 'daily', timeOfDay, timezone }) as const;

function preview(timeOfDay: string, changes: Partial<Calendar> = {}, now = NOW) {
  const made = previewOf(daily(timeOfDay), now, calendar(changes));
  assert.ok(made.kind === 'preview');
  return made;
}
const utc = (runs: readonly number[]) => runs.map((run) => new Date(run).toISOString().slice(0, 16));

test('schedule: daily shows the next three runs, from later than now on, in the zone’s own spelling', () => {
  const later = preview('12:01');
  assert.deepEqual(utc(later.runs), ['2026-03-01T12:01', '2026-03-02T12:01', '2026-03-03T12:01']);
  assert.deepEqual(later.schedule, daily('12:01', 'UTC'));
  assert.deepEqual(utc(preview('12:00').runs)[0], '2026-03-02T12:00');
  assert.deepEqual(utc(preview('11:59').runs)[0], '2026-03-02T11:59');
  assert.deepEqual(utc(preview('00:00').runs)[0], '2026-03-02T00:00');
  assert.deepEqual(utc(preview('23:59').runs)[0], '2026-03-01T23:59');
});

test('schedule: the run of the day before that a clock change put off until later than now is among them', () => {
  const instantOf: Calendar['instantOf'] = (day, minute) =>
    day * DAY + (minute + (day === Math.floor(NOW / DAY) - 1 ? 780 : 0)) * 60_000;
  const made = preview('23:30', { instantOf });
  assert.deepEqual(utc(made.runs), ['2026-03-01T12:30', '2026-03-01T23:30', '2026-03-02T23:30']);
});

test('schedule: two days whose runs fall together have one run', () => {
  const skipped = Math.floor(NOW / DAY) + 1;
  const instantOf: Calendar['instantOf'] = (day, minute) =>
    (day === skipped ? day + 1 : day) * DAY + minute * 60_000;
  const made = preview('13:00', { instantOf });
  assert.deepEqual(utc(made.runs), ['2026-03-01T13:00', '2026-03-03T13:00', '2026-03-04T13:00']);
});

test('schedule: once has one run, as it was given', () => {
  const runAt = '2026-03-01T13:00:00.001+01:00';
  assert.deepEqual(previewOf({ type: 'once', runAt }, NOW, calendar()), {
    kind: 'preview',
    schedule: { type: 'once', runAt },
    runs: [NOW + 1],
  });
});

test('schedule: weekly shows the days that it names, interval every so many minutes from its start, before now or later', () => {
  const runsOf = (schedule: Parameters<typeof previewOf>[0]) => {
    const made = previewOf(schedule, NOW, calendar());
    assert.ok(made.kind === 'preview');
    return utc(made.runs);
  };
  const weekly = { type: 'weekly', timeOfDay: '09:00', timezone: 'utc' } as const;
  // 2026-03-01 is a Sunday.
  assert.deepEqual(runsOf({ ...weekly, daysOfWeek: ['monday', 'thursday'] }), [
    '2026-03-02T09:00',
    '2026-03-05T09:00',
    '2026-03-09T09:00',
  ]);
  const interval = { type: 'interval', everyMinutes: 90 } as const;
  assert.deepEqual(runsOf({ ...interval, startAt: '2026-03-01T11:00:00Z' }), [
    '2026-03-01T12:30',
    '2026-03-01T14:00',
    '2026-03-01T15:30',
  ]);
  assert.deepEqual(runsOf({ ...interval, startAt: '2026-03-03T00:00:00Z' })[0], '2026-03-03T00:00');
  // No run is later than the last instant of RFC 3339.
  assert.deepEqual(runsOf({ ...interval, startAt: '9999-12-31T23:00:00Z' }), ['9999-12-31T23:00']);
});

test('schedule: an instant that is now or past, one that cannot be read, and an unknown zone are faults', () => {
  const fault = (schedule: Parameters<typeof previewOf>[0]) => {
    const made = previewOf(schedule, NOW, calendar());
    return made.kind === 'fault' ? made : null;
  };
  const once = (runAt: string) => fault({ type: 'once', runAt });
  const future = { kind: 'fault', path: '/runAt', message: 'Expected an instant in the future' };
  assert.deepEqual(once('2026-03-01T12:00:00.000Z'), future);
  assert.deepEqual(once('2026-03-01T12:00:00.0009Z'), future);
  assert.deepEqual(once('1999-01-01T00:00:00Z'), future);
  assert.equal(once('2026-03-01T12:00:00.001Z'), null);
  assert.match(once('2026-02-30T12:00:00Z')?.message ?? '', /ISO 8601 with an offset/);
  assert.deepEqual(fault(daily('12:00', 'Mars/Phobos')), {
    kind: 'fault',
    path: '/timezone',
    message: 'Expected the name of an IANA time zone',
  });
});
