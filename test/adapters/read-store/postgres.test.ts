import { needsPostgres } from '#test/support/postgres.ts';
import { readModelContract } from '#test/support/read-model.contract.ts';
import { postgresHarness } from '#test/support/read-store.ts';

readModelContract(postgresHarness(needsPostgres()));
