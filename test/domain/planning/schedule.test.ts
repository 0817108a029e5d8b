import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { previewOf, type ReadsCalendar, readInstant } from '#src/domain/planning/schedule.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const DAY = 86_400_000;

test('schedule: an instant is read with its offset, to the millisecond', () => {
  const cases = [
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01t12:00:00z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00:00+02:00', '2026-03-01T10:00:00.000Z'],
    ['2026-03-01T12:00:00-09:30', '2026-03-01T21:30:00.000Z'],
    ['2026-03-01T12:00:00+05:45', '2026-03-01T06:15:00.000Z'],
    ['2026-03-01T00:00:00+23:59', '2026-02-28T00:01:00.000Z'],
    ['2026-03-01T12:00:00.5Z', '2026-03-01T12:00:00.500Z'],
    ['2026-03-01T12:00:00.1239999Z', '2026-03-01T12:00:00.123Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
    ['0050-01-01T00:00:00Z', '0050-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ] as const;
  for (const [text, utc] of cases) {
    const at = readInstant(text);
    assert.equal(at === null ? null : new Date(at).toISOString(), utc, text);
  }
});

test('schedule: what is no instant on a real day with an offset is none', () => {
  for (const text of [
    '2026-02-29T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-32T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-12-31T23:59:60Z',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00+02:60',
    '2026-01-01T00:00:00+0200',
    '2026-01-01T00:00:00+02',
    '2026-01-01 00:00:00Z',
    '2026-01-01',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00.1234567890Z',
    '20260101T000000Z',
    '+02026-01-01T00:00:00Z',
    '+010000-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z ',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z\n',
    '2026-01-01T00:00:00Z[Europe/Berlin]',
    '２026-01-01T00:00:00Z',
    // RFC 3339 could not write it in UTC any more.
    '9999-12-31T23:59:59-00:01',
    'tomorrow',
    '1767225600000',
    '',
  ]) {
    assert.equal(readInstant(text), null, text);
  }
});

test('schedule: every instant of the years 0 to 9999 is read as it was written', () => {
  const range = {
    min: new Date('0000-01-02T00:00:00Z'),
    max: new Date('9999-12-30T00:00:00Z'),
    noInvalidDate: true,
  };
  fc.assert(
    fc.property(fc.date(range), fc.integer({ min: -1439, max: 1439 }), (date, offset) => {
      const local = new Date(date.getTime() + offset * 60_000).toISOString().slice(0, -1);
      const size = Math.abs(offset);
      const [hours, minutes] = [Math.floor(size / 60), size % 60].map((n) => String(n).padStart(2, '0'));
      assert.equal(readInstant(`${local}${offset < 0 ? '-' : '+'}${hours}:${minutes}`), date.getTime());
    }),
  );
});

/** Knows one zone, whose clocks never change until a test says so. */
const calendar = (changes: Partial<ReadsCalendar> = {}): ReadsCalendar => ({
  findZone: (name) => (name.toLowerCase() === 'utc' ? 'UTC' : null),
  dayOf: (instant) => Math.floor(instant / DAY),
  instantOf: (day, minute) => day * DAY + minute * 60_000,
  localTime: (instant) => new Date(instant).toISOString(),
  ...changes,
});

const daily = (timeOfDay: string, timezone = 'utc') => ({ type: 'daily', timeOfDay, timezone }) as const;

function preview(timeOfDay: string, changes: Partial<ReadsCalendar> = {}, now = NOW) {
  const made = previewOf(daily(timeOfDay), now, calendar(changes));
  assert.ok(!('fault' in made));
  return made;
}
const utc = (runs: readonly number[]) => runs.map((run) => new Date(run).toISOString().slice(0, 16));

test('schedule: daily shows the next three runs, from later than now on, in the zone’s own spelling', () => {
  const later = preview('12:01');
  assert.deepEqual(utc(later.runs), ['2026-03-01T12:01', '2026-03-02T12:01', '2026-03-03T12:01']);
  assert.deepEqual(later.schedule, daily('12:01', 'UTC'));
  assert.equal(later.shifted, false);
  assert.deepEqual(utc(preview('12:00').runs)[0], '2026-03-02T12:00');
  assert.deepEqual(utc(preview('11:59').runs)[0], '2026-03-02T11:59');
  assert.deepEqual(utc(preview('00:00').runs)[0], '2026-03-02T00:00');
  assert.deepEqual(utc(preview('23:59').runs)[0], '2026-03-01T23:59');
});

test('schedule: the run of the day before that a clock change put off until later than now is among them', () => {
  const instantOf: ReadsCalendar['instantOf'] = (day, minute) =>
    day * DAY + (minute + (day === Math.floor(NOW / DAY) - 1 ? 780 : 0)) * 60_000;
  const made = preview('23:30', { instantOf });
  assert.deepEqual(utc(made.runs), ['2026-03-01T12:30', '2026-03-01T23:30', '2026-03-02T23:30']);
  assert.equal(made.shifted, true);
});

test('schedule: two days whose runs fall together have one run', () => {
  const skipped = Math.floor(NOW / DAY) + 1;
  const instantOf: ReadsCalendar['instantOf'] = (day, minute) =>
    (day === skipped ? day + 1 : day) * DAY + minute * 60_000;
  const made = preview('13:00', { instantOf });
  assert.deepEqual(utc(made.runs), ['2026-03-01T13:00', '2026-03-03T13:00', '2026-03-04T13:00']);
});

test('schedule: once has one run, as it was given', () => {
  const runAt = '2026-03-01T13:00:00.001+01:00';
  assert.deepEqual(previewOf({ type: 'once', runAt }, NOW, calendar()), {
    schedule: { type: 'once', runAt },
    runs: [NOW + 1],
    localTimes: [runAt],
    shifted: false,
  });
});

test('schedule: an instant that is now or past, one that cannot be read, and an unknown zone are faults', () => {
  const fault = (schedule: Parameters<typeof previewOf>[0]) => {
    const made = previewOf(schedule, NOW, calendar());
    return 'fault' in made ? made.fault : null;
  };
  const once = (runAt: string) => fault({ type: 'once', runAt });
  const future = { path: '/runAt', message: 'Expected an instant in the future' };
  assert.deepEqual(once('2026-03-01T12:00:00.000Z'), future);
  assert.deepEqual(once('2026-03-01T12:00:00.0009Z'), future);
  assert.deepEqual(once('1999-01-01T00:00:00Z'), future);
  assert.equal(once('2026-03-01T12:00:00.001Z'), null);
  assert.match(once('2026-02-30T12:00:00Z')?.message ?? '', /ISO 8601 with an offset/);
  assert.deepEqual(fault(daily('12:00', 'Mars/Phobos')), {
    path: '/timezone',
    message: 'Expected the name of an IANA time zone',
  });
});
