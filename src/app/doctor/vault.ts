// The doctor on the vault of the schedules.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readVaultFile, vaultRemedy } from '#src/adapters/vault/sqlite.ts';
import type { Config } from '#src/config.ts';
import { isSqliteBusy } from '#src/lib/sqlite-error.ts';
import { demandWritable } from '../start-errors.ts';
import { type Checked, fine, problem, skipped } from './finding.ts';

/** A transaction that is under way, or that the next start undoes: the file is as it is only then. */
const JOURNAL = '-journal';

export function checkVault({ schedules, databaseUrl, dataDir }: Config): Checked {
  if (schedules === null) return skipped('SCHEDULES is off');
  if (databaseUrl !== null) return fine('the vault is in the database: see the line read_models');
  const file = join(dataDir, 'vault.db');
  demandWritable([file]);
  if (!existsSync(file)) return fine(`${file} is created at the first start`);
  if (existsSync(file + JOURNAL)) return fine(`${file} is being written`);
  try {
    return fine(`${file} is read; it has ${readVaultFile(file).keys} keys`);
  } catch (error) {
    if (isSqliteBusy(error)) return fine(`${file} is being written`);
    return problem(`the vault cannot be read: no run of a schedule is sold or started. ${vaultRemedy(file)}`);
  }
}
