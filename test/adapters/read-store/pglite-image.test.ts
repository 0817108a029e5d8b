// The image of PGlite's data directory belongs to the installed PGlite, and no initdb runs at a first start.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PGlite } from '@electric-sql/pglite';
import { PGLITE_SETTINGS, unpackPgliteImage } from '#src/adapters/read-store/pglite-image.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const scratch = testFolder('pglite-image');

const names = (directory: string) => readdirSync(directory, { recursive: true }).map(String).sort();

/** The versions of the control file and of the catalogue, the first fields after the system identifier. */
const versions = (directory: string) =>
  readFileSync(join(directory, 'global', 'pg_control'))
    .subarray(8, 16)
    .toString('hex');

const catalogue = async (pg: PGlite) =>
  (
    await pg.query(
      'SELECT oid::int, relname, relkind, relnatts FROM pg_class WHERE relkind <> $1 ORDER BY oid',
      ['t'],
    )
  ).rows;

test('pglite: the image has the files and the catalogue that the installed PGlite makes', async () => {
  const [image, made] = [join(scratch, 'image'), join(scratch, 'made')];
  await unpackPgliteImage(image);
  const fresh = await PGlite.create({ dataDir: made, postgresqlconf: PGLITE_SETTINGS });
  const expected = await catalogue(fresh);
  await fresh.close();
  const outdated = 'run `bun run build:pglite`';
  assert.deepEqual(names(image), names(made), outdated);
  assert.equal(versions(image), versions(made), outdated);
  const opened = await PGlite.create({ dataDir: image, postgresqlconf: PGLITE_SETTINGS });
  assert.deepEqual(await catalogue(opened), expected, outdated);
  assert.ok(expected.length > 300);
  await opened.close();
  for (const file of ['PG_VERSION', 'postgresql.conf', 'pg_hba.conf'])
    assert.equal(readFileSync(join(image, file), 'utf8'), readFileSync(join(made, file), 'utf8'), file);
});
