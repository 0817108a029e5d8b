// PGlite's pristine directory, which the first start on an empty DATA_DIR spends most of its time on (initdb: seconds of
// a whole core). A test run makes it once, by the service's own code; the data directories of test worlds begin with it,
// as one does whose read models have been thrown away. Starts on nothing at all are those of test/cli and test/adapters.
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { takePgliteDirectory } from '#src/adapters/read-store/pglite-directory.ts';
import { makePgliteDirectory } from '#src/adapters/read-store/pglite-new-directory.ts';

/** The environment variable in which a test run passes the path of that directory to its test files. */
export const PRISTINE = 'RELAY_TEST_PRISTINE';

/** `directory`: of a service's read models, with nothing but the pristine files. */
export async function makePristine(directory: string): Promise<void> {
  const taken = takePgliteDirectory(directory, 'of no version');
  try {
    await taken.renew(makePgliteDirectory, true);
  } finally {
    taken.release();
  }
  for (const part of ['pglite', 'owner.pid']) rmSync(join(directory, part), { recursive: true });
}

/** For a data directory in which nothing is yet; where a test file runs alone, the service makes all of it. */
export function givePristine(dataDir: string): void {
  const pristine = process.env[PRISTINE];
  if (pristine === undefined || (existsSync(dataDir) && readdirSync(dataDir).length > 0)) return;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  cpSync(pristine, join(dataDir, 'read-models'), { recursive: true });
}
