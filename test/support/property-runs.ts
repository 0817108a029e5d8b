// How many cases a property is tried with.
import process from 'node:process';

/** Half of `count` in the fast set, four times as many in the full one. */
export const runs = (count: number): number =>
  process.env.RELAY_TEST_LONG === undefined ? Math.ceil(count / 2) : Math.ceil(4 * count);
