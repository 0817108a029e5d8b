import { postgresFolder } from '#test/support/chain/requirements.ts';
import { readModelContract } from '#test/support/contract/read-model.contract.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { pgliteHarness } from '#test/support/log/read-store.ts';

// Both stores are PostgreSQL: with one on this machine, the fast set runs the whole contract there only.
const whole = LONG || postgresFolder() === null;
readModelContract(pgliteHarness(), { whole });
