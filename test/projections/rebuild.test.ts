import { needsPostgres } from '#test/support/postgres.ts';
import { rebuildContract } from '#test/support/rebuild.contract.ts';
import { postgresRebuilds } from '#test/support/rebuild-world.ts';

rebuildContract(postgresRebuilds(needsPostgres()));
