import { readModelContract } from '#test/support/read-model.contract.ts';
import { pgliteHarness } from '#test/support/read-store.ts';

readModelContract(pgliteHarness());
