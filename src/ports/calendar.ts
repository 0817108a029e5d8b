// Time zones: the local time of an instant, and the instant of a local time. Reads no clock.

export interface Calendar {
  /**
   * The zone's name as the IANA database writes it, matched without case; a link keeps its own name. null if there is no
   * such zone, also for offsets (`+02:00`) and other text that some parsers accept as a zone. Never throws.
   */
  findZone(name: string): string | null;
  /** The local date of an instant (ms since the Unix epoch), in days since 1970-01-01. `zone`: of `findZone`. */
  dayOf(instantMs: number, zone: string): number;
  /**
   * The instant of a local time, in ms since the Unix epoch. The earlier one if the local time occurs twice. If it is
   * skipped, the instant computed with the offset before the change: its local time is later by the skipped duration,
   * which may be on the next day. `minuteOfDay`: 0 to 1439.
   */
  instantOf(day: number, minuteOfDay: number, zone: string): number;
  /** RFC 3339 to the second, with the zone's offset. */
  localTime(instantMs: number, zone: string): string;
}
