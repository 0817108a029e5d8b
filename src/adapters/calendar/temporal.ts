// The calendar port by Temporal. Every runtime uses the polyfill's code, also if it has its own Temporal, so that results
// differ only by the zone data, which are the runtime's (ICU).
import { Temporal } from 'temporal-polyfill/implementation';
import type { Calendar } from '#src/domain/schedule/calendar.ts';

/** Names only: Temporal also accepts offsets, and a whole date and time with a zone. */
const NAME = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;
/** Known to one runtime's ICU only. `SystemV/…` is not in the IANA database, `Factory` is the zone of no place. */
const NO_ZONE = /^(?:SystemV\/.*|Factory)$/i;

/** Temporal also accepts other forms, annotations and leap seconds. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/i;
/** The last instant of RFC 3339, whose years have four digits. */
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const EPOCH = Temporal.PlainDate.from('1970-01-01');

export function temporalCalendar(): Calendar {
  const zoned = (instantMs: number, zone: string) =>
    Temporal.Instant.fromEpochMilliseconds(instantMs).toZonedDateTimeISO(zone);
  return {
    findInstant(text) {
      const at = INSTANT.test(text) ? orNull(() => Temporal.Instant.from(text).epochMilliseconds) : null;
      return at !== null && at <= LAST_INSTANT ? at : null;
    },
    findZone: (name) =>
      NAME.test(name) && !NO_ZONE.test(name) ? orNull(() => zoned(0, name).timeZoneId) : null,
    dayOf: (instantMs, zone) => EPOCH.until(zoned(instantMs, zone).toPlainDate()).days,
    instantOf: (day, minuteOfDay, zone) =>
      EPOCH.add({ days: day })
        .toPlainDateTime({ hour: Math.floor(minuteOfDay / 60), minute: minuteOfDay % 60 })
        .toZonedDateTime(zone, { disambiguation: 'compatible' }).epochMilliseconds,
  };
}

/** null if Temporal refuses the text. */
function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (thrown) {
    if (thrown instanceof RangeError) return null;
    throw thrown;
  }
}
