// Instants and time zones, as schedules need them.

/** Instants and time zones. Reads no clock. Instants: ms since the Unix epoch. */
export interface Calendar {
  /**
   * The instant, rounded down to the ms; null unless the text is extended ISO 8601 with an offset, on an existing day, and
   * its UTC time is representable in RFC 3339. Leap seconds are not accepted. Never throws.
   */
  findInstant(text: string): number | null;
  /**
   * The zone's name as the IANA database writes it, matched without case; a link keeps its own name. null if there is no
   * such zone, also for offsets (`+02:00`) and other text that some parsers accept as a zone. Never throws.
   */
  findZone(name: string): string | null;
  /** The local date of an instant, in days since 1970-01-01. `zone`: of `findZone`. */
  dayOf(instantMs: number, zone: string): number;
  /**
   * The instant of a local time. The earlier one if the local time occurs twice. If it is skipped, the instant computed
   * with the offset before the change: its local time is later by the skipped duration, which may be on the next day.
   * `minuteOfDay`: 0 to 1439.
   */
  instantOf(day: number, minuteOfDay: number, zone: string): number;
}

/**
 * The first run later than `afterMs` on a day that `isOn` accepts (days since 1970-01-01). Starts at the day before: if the
 * clock skips midnight, the run of that day is after midnight. If a zone skips a whole day, the run of that day coincides with
 * the next one.
 */
export function nextOnDays(
  { timeOfDay, timezone }: { readonly timeOfDay: string; readonly timezone: string },
  isOn: (day: number) => boolean,
  afterMs: number,
  calendar: Calendar,
): number {
  const [hour, minute] = timeOfDay.split(':').map(Number);
  const minuteOfDay = (hour ?? 0) * 60 + (minute ?? 0);
  for (let day = calendar.dayOf(afterMs, timezone) - 1; ; day++) {
    if (!isOn(day)) continue;
    const at = calendar.instantOf(day, minuteOfDay, timezone);
    if (at > afterMs) return at;
  }
}
