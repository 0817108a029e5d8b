import { rebuildContract } from '#test/support/rebuild.contract.ts';
import { pgliteRebuilds } from '#test/support/rebuild-world.ts';

rebuildContract(pgliteRebuilds());
