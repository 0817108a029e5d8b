import process from 'node:process';
import { readModelContract } from '#test/support/read-model.contract.ts';
import { pgliteHarness } from '#test/support/read-store.ts';
import { postgresFolder } from '#test/support/requirements.ts';

// Both stores are PostgreSQL: with one on this machine, the fast set runs the whole contract there only.
const whole = process.env.RELAY_TEST_LONG !== undefined || postgresFolder() === null;
readModelContract(pgliteHarness(), { whole });
