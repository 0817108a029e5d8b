// The calendar by Temporal. Its clock changes are history, or near enough to stay.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { firstShown, offsetMs } from '#test/support/given/wall-clock.ts';

const DAY = 86_400_000;
const minuteOf = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

const calendar = temporalCalendar();
const at = (date: string, time: string, zone: string) =>
  new Date(calendar.instantOf(Date.parse(date) / DAY, minuteOf(time), zone)).toISOString().slice(0, 16);

const previousDay = (date: string) => new Date(Date.parse(date) - DAY).toISOString().slice(0, 10);

type Change = readonly [zone: string, date: string, time: string, utc: string, why: string];

const GAPS: readonly Change[] = [
  ['Europe/Berlin', '2026-03-29', '02:00', '2026-03-29T01:00', 'the clock shows 03:00'],
  ['Europe/Berlin', '2026-03-29', '02:30', '2026-03-29T01:30', 'the clock shows 03:30'],
  ['Europe/Berlin', '2026-03-29', '01:59', '2026-03-29T00:59', 'the last minute before it'],
  ['Europe/Berlin', '2026-03-29', '03:00', '2026-03-29T01:00', 'the first minute after it'],
  ['America/New_York', '2026-03-08', '02:30', '2026-03-08T07:30', 'the clock shows 03:30'],
  ['Australia/Lord_Howe', '2025-10-05', '02:15', '2025-10-04T15:45', 'by 30 minutes: the clock shows 02:45'],
  ['Pacific/Apia', '2011-12-30', '10:00', '2011-12-30T20:00', 'a whole day: the clock shows the 31st'],
  ['Africa/Casablanca', '2024-04-14', '02:30', '2024-04-14T02:30', 'after Ramadan: the clock shows 03:30'],
  ['America/Santiago', '2024-09-08', '00:00', '2024-09-08T04:00', 'midnight: the clock shows 01:00'],
  ['America/Santiago', '2024-09-08', '00:30', '2024-09-08T04:30', 'after midnight: the clock shows 01:30'],
  ['Asia/Beirut', '2022-03-27', '00:00', '2022-03-26T22:00', 'midnight: the clock shows 01:00'],
  [
    'America/Nuuk',
    '2024-03-30',
    '23:30',
    '2024-03-31T01:30',
    'before midnight: the clock shows 00:30 of the next day',
  ],
  ['Antarctica/Troll', '2024-03-31', '01:30', '2024-03-31T01:30', 'two hours: the clock shows 03:30'],
];

const OVERLAPS: readonly Change[] = [
  ['Europe/Berlin', '2026-10-25', '02:00', '2026-10-25T00:00', 'the first'],
  ['Europe/Berlin', '2026-10-25', '02:30', '2026-10-25T00:30', 'the first'],
  ['Europe/Berlin', '2026-10-25', '03:00', '2026-10-25T02:00', 'shown once'],
  ['America/New_York', '2026-11-01', '01:30', '2026-11-01T05:30', 'the first'],
  ['Australia/Lord_Howe', '2025-04-06', '01:45', '2025-04-05T14:45', 'by 30 minutes: the first'],
  ['Africa/Casablanca', '2024-03-10', '02:30', '2024-03-10T01:30', 'before Ramadan: the first'],
  ['America/Santiago', '2024-04-06', '23:30', '2024-04-07T02:30', 'before midnight: the first'],
  ['Asia/Beirut', '2022-10-29', '23:30', '2022-10-29T20:30', 'before midnight: the first'],
  ['America/St_Johns', '2006-10-29', '00:00', '2006-10-29T02:30', 'the first of two midnights'],
];

test('an instant is read with its offset, to the millisecond', () => {
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
    const at = calendar.findInstant(text);
    assert.equal(at === null ? null : new Date(at).toISOString(), utc, text);
  }
});

test('what is no instant on a real day with an offset is none', () => {
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
    assert.equal(calendar.findInstant(text), null, text);
  }
});

test('every instant of the years 0 to 9999 is read as it was written', () => {
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
      assert.equal(
        calendar.findInstant(`${local}${offset < 0 ? '-' : '+'}${hours}:${minutes}`),
        date.getTime(),
      );
    }),
  );
});

test('a zone is found in any case, under its own name, also a link', () => {
  for (const zone of [
    'Europe/Berlin',
    'America/New_York',
    'America/Port-au-Prince',
    'America/Argentina/ComodRivadavia',
    'Antarctica/DumontDUrville',
    'Asia/Calcutta',
    'Africa/Dar_es_Salaam',
    'Etc/GMT+5',
    'US/East-Indiana',
    'EST5EDT',
    'NZ-CHAT',
    'GB',
    'UTC',
  ]) {
    for (const text of [zone, zone.toLowerCase(), zone.toUpperCase()]) {
      assert.equal(calendar.findZone(text), zone);
    }
  }
});

test('every zone that the runtime lists is found in any case', () => {
  const zones = Intl.supportedValuesOf('timeZone');
  assert.ok(zones.length > 400, `${zones.length}`);
  for (const zone of zones) {
    assert.equal(calendar.findZone(zone.toLowerCase()), zone);
    assert.equal(calendar.findZone(zone.toUpperCase()), zone);
  }
});

test('an offset, an abbreviation that is no zone, and other text is no zone', () => {
  for (const text of [
    '+02:00',
    '-05',
    '+0200',
    'Z',
    'UTC+1',
    'GMT+1',
    'Etc/GMT+15',
    'PST',
    'IST',
    'CEST',
    'Mars/Phobos',
    'Europe',
    'Europe/',
    '/Europe/Berlin',
    'Europe/Berlin ',
    ' Europe/Berlin',
    'Europe/Berlin\n',
    'Europe//Berlin',
    'Europe Berlin',
    'Europe/Berlin[u-ca=iso8601]',
    '2026-01-01T00:00[Europe/Berlin]',
    '2026-01-01T00:00Z',
    '[Europe/Berlin]',
    'Etc/Unknown',
    'Factory',
    'SystemV/PST8',
    'systemv/pst8',
    'local',
    'localtime',
    '../../etc/passwd',
    '__proto__',
    'constructor',
    'Ｅurope/Berlin',
    'Europe/Berlın',
    '',
    'A'.repeat(10_000),
  ]) {
    assert.equal(calendar.findZone(text), null, text.slice(0, 40));
  }
});

for (const [zone, date, time, utc, why] of GAPS) {
  test(`skipped: ${zone} ${date} ${time}: ${why}`, () => assert.equal(at(date, time, zone), utc));
}
for (const [zone, date, time, utc, why] of OVERLAPS) {
  test(`shown twice: ${zone} ${date} ${time}: ${why}`, () => assert.equal(at(date, time, zone), utc));
}

test('a zone without daylight saving shows every time once, at one offset', () => {
  for (const date of ['2026-01-15', '2026-03-29', '2026-07-15', '2026-10-25']) {
    assert.equal(at(date, '02:30', 'Asia/Tokyo'), `${previousDay(date)}T17:30`);
    assert.equal(at(date, '02:30', 'Asia/Kathmandu'), `${previousDay(date)}T20:45`);
    assert.equal(at(date, '02:30', 'UTC'), `${date}T02:30`);
  }
});

test('the local date of an instant', () => {
  const instant = Date.parse('2026-06-30T22:30:00.987Z');
  const days = (zone: string) => calendar.dayOf(instant, zone) - Date.parse('2026-06-30') / DAY;
  assert.equal(days('UTC'), 0);
  assert.equal(days('Europe/Berlin'), 1);
  assert.equal(days('Pacific/Kiritimati'), 1);
  assert.equal(days('Asia/Kolkata'), 1);
  assert.equal(days('Pacific/Marquesas'), 0);
  assert.equal(calendar.dayOf(-1, 'UTC'), -1);
  assert.equal(calendar.dayOf(0, 'UTC'), 0);
});

test('any time of any day in any zone is the first instant that shows it, or that would have', () => {
  const zone = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
  const day = fc.integer({ min: Date.parse('2015-01-01') / DAY, max: Date.parse('2037-12-31') / DAY });
  const minute = fc.integer({ min: 0, max: 1439 });
  fc.assert(
    fc.property(zone, day, minute, (where, date, time) => {
      const instant = calendar.instantOf(date, time, where);
      assert.equal(instant, firstShown(date, time, where));
      const local = instant + offsetMs(instant, where);
      assert.equal(calendar.dayOf(instant, where), Math.floor(local / DAY));
    }),
    { numRuns: runs(400) },
  );
});
