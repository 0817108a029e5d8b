// Builds pglite-image.tar.br with the installed PGlite: `bun run build:pglite`. Run it after every update of PGlite.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { brotliCompressSync, constants } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { PGLITE_IMAGE, PGLITE_SETTINGS } from './pglite-image.ts';

const directory = mkdtempSync(join(tmpdir(), 'pglite-image-'));
try {
  const pg = await PGlite.create({ dataDir: join(directory, 'files'), postgresqlconf: PGLITE_SETTINGS });
  await pg.close();
  const options = [
    '--format=ustar',
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
  ];
  const tar = spawnSync('tar', [...options, '-C', join(directory, 'files'), '-cf', '-', '.'], {
    maxBuffer: 256 * 1024 * 1024,
  });
  if (tar.status !== 0) throw new Error(`tar: ${tar.stderr}`);
  // The three databases are almost equal: a window of 16 MB includes all of them.
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 9,
    [constants.BROTLI_PARAM_LGWIN]: 24,
    [constants.BROTLI_PARAM_SIZE_HINT]: tar.stdout.length,
  };
  const image = brotliCompressSync(tar.stdout, { params });
  writeFileSync(PGLITE_IMAGE, image);
  process.stdout.write(`${PGLITE_IMAGE}: ${image.length} bytes\n`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
