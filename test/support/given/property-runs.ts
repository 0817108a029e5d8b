// What the fast set leaves to the full one (`bun test/run.ts --full`).
import process from 'node:process';

/** Whether the full set runs. */
export const LONG = process.env.RELAY_TEST_LONG !== undefined;

/** How many cases a property is tried with: half of `count` in the fast set, four times as many in the full one. */
export const runs = (count: number): number => Math.ceil(LONG ? 4 * count : count / 2);

/** Repeats a round of cases until nothing is missing, 20 times at most: chance may leave a rare answer out of one. */
export async function rounds(missing: () => readonly string[], round: () => Promise<void>): Promise<void> {
  for (let done = 0; done === 0 || (missing().length > 0 && done < 20); done++) await round();
}
