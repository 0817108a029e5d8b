/** RFC 3339, UTC, milliseconds. `ms`: since the Unix epoch; throws a RangeError beyond the range of a Date. */
export const iso = (ms: number): string => new Date(ms).toISOString();

/** The time of the clock, as `iso` writes it. */
export const isoNow = ({ clock }: { readonly clock: { now(): number } }): string => iso(clock.now());
