// How long a projector rests after a failure, and before it builds rows again that were lost: longer each time, until the
// rows are past the position at which they failed. What passes a failure by, and comes to it again, is no progress.
import { isBefore } from './progress.ts';

const FIRST_MS = 100;
/** At most: while the store or the log is unavailable, and while both answer, so that only a defect is left as the cause. */
export const LONGEST_MS = { unavailable: 1000, defect: 60_000 };
/** Rows that are lost again and again take a fifth of the time. */
const REST = 4;

export class Pauses {
  #pauseMs = 0;
  /** The last position at which rows failed or were lost. */
  #failedAt: string | null = null;
  /** How often rows were built since they were past that, and how long sessions have projected into the last ones. */
  #builds = 0;
  #builtMs = 0;

  /** true after the first failure. */
  get areGrowing(): boolean {
    return this.#pauseMs > 0;
  }

  /** A session has ended after `tookMs`, with its rows at `position`. */
  ended(position: string | null, tookMs: number): void {
    if (isBefore(this.#failedAt, position)) this.#failedAt = position;
    this.#builtMs += tookMs;
  }

  /** ms to the next try. */
  afterFailure(longestMs: number): number {
    this.#pauseMs = Math.min(longestMs, Math.max(FIRST_MS, 2 * this.#pauseMs));
    return this.#pauseMs;
  }

  /** ms until rows are built from the first event. Rows that are lost for the first time are built at once. */
  beforeBuild(): number {
    const isRepeated = this.#builds++ > 0;
    const restMs = isRepeated ? Math.max(REST * this.#builtMs, this.afterFailure(LONGEST_MS.defect)) : 0;
    this.#builtMs = 0;
    return restMs;
  }

  /** Rows are at `position`; `isAll`: nothing is left to fail at. Returns whether failures are over. */
  worked(position: string | null, isAll: boolean): boolean {
    if (!isAll && !isBefore(this.#failedAt, position)) return false;
    const wereGrowing = this.areGrowing;
    this.#pauseMs = 0;
    this.#builds = 0;
    return wereGrowing;
  }
}
