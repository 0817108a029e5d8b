// Wall clocks by Intl alone, apart from the calendar under test so that the two can disagree: slow, and plain to read.

const HOUR = 3_600_000;
const formats = new Map<string, Intl.DateTimeFormat>();

/** How much the clocks of a zone are ahead of UTC at an instant. */
export function offsetMs(instantMs: number, zone: string): number {
  let format = formats.get(zone);
  if (format === undefined) {
    const two = 'numeric';
    format = new Intl.DateTimeFormat('en-US-u-hc-h23-ca-gregory', {
      ...{ timeZone: zone, year: two, month: two, day: two, hour: two, minute: two, second: two },
    });
    formats.set(zone, format);
  }
  const parts = new Map(format.formatToParts(instantMs).map(({ type, value }) => [type, Number(value)]));
  const part = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? Number.NaN;
  const shown = Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
    part('second'),
  );
  return shown - Math.floor(instantMs / 1000) * 1000;
}

/** The first instant at which the clock shows a time of a day; where none does, by the offset from before the gap. */
export function firstShown(day: number, minuteOfDay: number, zone: string): number {
  return (
    shownAt(day, minuteOfDay, zone) ??
    wallOf(day, minuteOfDay) - offsetMs(wallOf(day, minuteOfDay) - 26 * HOUR, zone)
  );
}

/** null: the clock skips it. */
export function shownAt(day: number, minuteOfDay: number, zone: string): number | null {
  const wall = wallOf(day, minuteOfDay);
  const offsets = new Set<number>();
  for (let at = wall - 38 * HOUR; at <= wall + 38 * HOUR; at += HOUR) offsets.add(offsetMs(at, zone));
  const shown = [...offsets].map((offset) => wall - offset).filter((at) => at + offsetMs(at, zone) === wall);
  return shown.length === 0 ? null : Math.min(...shown);
}

const wallOf = (day: number, minuteOfDay: number) => day * 24 * HOUR + minuteOfDay * 60_000;
