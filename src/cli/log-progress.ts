// How far a walk through the log is, for a progress bar alone: positions are opaque, yet in both logs they begin with a
// number that grows with what was stored.

/** 0 to 1; null where it cannot be told. */
export function shareOf(position: string | null, head: string | null): number | null {
  const [at, of] = [position, head].map((text) => Number(/^\d+/.exec(text ?? '')?.[0] ?? Number.NaN));
  if (at === undefined || of === undefined || !(of > 0) || !(at <= of)) return null;
  return at / of;
}
