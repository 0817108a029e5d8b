// Percentiles of durations that were counted by class. An estimate lies in the class of the duration that it stands
// for: it is wrong by 28 % of it at most (the widest class reaches from 25 to 32 ms), in the first class by less
// than 25 ms; of what took longer than the last bound no more is said than that bound.
import { DURATION_BOUNDS_MS } from './table.ts';

/** Milliseconds. */
export type Percentiles = { readonly p50: number; readonly p95: number };

/** `counts`: how many durations by class; null where there are none. */
export function percentilesOf(counts: readonly number[]): Percentiles | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  return { p50: atRank(counts, Math.ceil(total * 0.5)), p95: atRank(counts, Math.ceil(total * 0.95)) };
}

/** The duration with `rank` (from 1) of all in order: those of one class are taken to lie in it at equal distances. */
function atRank(counts: readonly number[], rank: number): number {
  let before = 0;
  for (const [at, count] of counts.entries()) {
    if (before + count < rank) {
      before += count;
      continue;
    }
    const lower = DURATION_BOUNDS_MS[at - 1] ?? 0;
    const upper = DURATION_BOUNDS_MS[at] ?? lower;
    return Math.round(lower + (upper - lower) * ((rank - before - 0.5) / count));
  }
  return DURATION_BOUNDS_MS.at(-1) ?? 0;
}
