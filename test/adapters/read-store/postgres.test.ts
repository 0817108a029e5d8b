import { readModelContract } from '#test/support/contract/read-model.contract.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { postgresHarness } from '#test/support/log/read-store.ts';

readModelContract(postgresHarness(needsPostgres()));
