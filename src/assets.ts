// The files that ship with the program beside its code: named and read here and nowhere else, from the source and from
// the binary of `bun run build:binary`.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Globs from the project's root: what the program reads, and what the binary contains. */
export const ASSETS = [
  'migrations/*/*.sql',
  'migrations/*/meta/_journal.json',
  'src/adapters/read-store/pglite-image.tar.br',
  'src/discovery/favicon.{ico,svg}',
  'src/discovery/snippets/*',
  'src/http/pages/page.css',
  'src/verify/built/*',
];

/** In the binary, the commit that it was built from: a file in it. */
export const COMMIT_FILE = 'built/commit.txt';

/** In the binary every module has the address of the binary, and the assets have their paths below its folder. */
const ROOT = new URL(import.meta.url.endsWith('/src/assets.ts') ? '../' : './', import.meta.url);

/** `path`: from the project's root. A folder is returned as well. */
export const assetPath = (path: string): string => fileURLToPath(new URL(path, ROOT));

export const assetText = (path: string): string => readFileSync(assetPath(path), 'utf8');

export const assetBytes = (path: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(readFileSync(assetPath(path)));

/** The commit that the binary was built from, with `-dirty` if files differed from it; null when run from the source. */
export const builtCommit = (): string | null =>
  existsSync(assetPath(COMMIT_FILE)) ? assetText(COMMIT_FILE).trim() : null;
