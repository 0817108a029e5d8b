// What the fast set leaves to the full one (`bun test/run.ts --full`).
import process from 'node:process';

/** Whether the full set runs. */
export const LONG = process.env.RELAY_TEST_LONG !== undefined;

/** How many cases a property is tried with: half of `count` in the fast set, four times as many in the full one. */
export const runs = (count: number): number => Math.ceil(LONG ? 4 * count : count / 2);
