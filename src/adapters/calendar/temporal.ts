// The calendar port by Temporal. Every runtime uses the polyfill's code, also if it has its own Temporal, so that results
// differ only by the zone data, which are the runtime's (ICU).
import { Temporal } from 'temporal-polyfill/implementation';
import type { Calendar } from '../../ports/calendar.ts';

/** Names only: Temporal also accepts offsets, and a whole date and time with a zone. */
const NAME = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;
/** Known to one runtime's ICU only. `SystemV/…` is not in the IANA database, `Factory` is the zone of no place. */
const NO_ZONE = /^(?:SystemV\/.*|Factory)$/i;

const EPOCH = Temporal.PlainDate.from('1970-01-01');

export function temporalCalendar(): Calendar {
  const zoned = (instantMs: number, zone: string) =>
    Temporal.Instant.fromEpochMilliseconds(instantMs).toZonedDateTimeISO(zone);
  return {
    findZone(name) {
      if (!NAME.test(name) || NO_ZONE.test(name)) return null;
      try {
        return zoned(0, name).timeZoneId;
      } catch (thrown) {
        if (thrown instanceof RangeError) return null;
        throw thrown;
      }
    },
    dayOf: (instantMs, zone) => EPOCH.until(zoned(instantMs, zone).toPlainDate()).days,
    instantOf: (day, minuteOfDay, zone) =>
      EPOCH.add({ days: day })
        .toPlainDateTime({ hour: Math.floor(minuteOfDay / 60), minute: minuteOfDay % 60 })
        .toZonedDateTime(zone, { disambiguation: 'compatible' }).epochMilliseconds,
    localTime: (instantMs, zone) =>
      zoned(instantMs, zone).toString({ timeZoneName: 'never', smallestUnit: 'second' }),
  };
}
