import { LONG } from '#test/support/property-runs.ts';
import { readModelContract } from '#test/support/read-model.contract.ts';
import { pgliteHarness } from '#test/support/read-store.ts';
import { postgresFolder } from '#test/support/requirements.ts';

// Both stores are PostgreSQL: with one on this machine, the fast set runs the whole contract there only.
const whole = LONG || postgresFolder() === null;
readModelContract(pgliteHarness(), { whole });
