// Time zones: what a clock on the wall shows where, and when it shows it. No clock of its own.

export interface Calendar {
  /**
   * The zone's name as the IANA database writes it, found whatever its case; a link keeps its own name. null: there is
   * no such zone, as for offsets (`+02:00`) and other text that some readers take for one. Never throws.
   */
  findZone(name: string): string | null;
  /** The local date of an instant (ms since the Unix epoch), in days since 1970-01-01. `zone`: of `findZone`. */
  dayOf(instantMs: number, zone: string): number;
  /**
   * When the wall clock of a zone shows a time of a day: ms since the Unix epoch. Shown twice, the earlier. Skipped, the
   * instant at which a clock would show it that had not jumped: as much later on the wall as was skipped, by which it may
   * be on the next day. `minuteOfDay`: 0 to 1439.
   */
  instantOf(day: number, minuteOfDay: number, zone: string): number;
  /** As people there write an instant: RFC 3339 to the second, with the offset. */
  localTime(instantMs: number, zone: string): string;
}
