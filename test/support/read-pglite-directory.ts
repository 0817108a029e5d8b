// Directories of embedded read models for tests: made once and copied, because to make one takes seconds.
import { cpSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { silent } from './read-store.ts';

/** Answers new directories in `place`, each closed in order and without any row. */
export function freshDirectories(place: string): () => Promise<string> {
  let seed: Promise<string> | null = null;
  return async () => {
    seed ??= seeded(place);
    const directory = mkdtempSync(join(place, 'case-'));
    cpSync(await seed, directory, { recursive: true });
    return directory;
  };
}

async function seeded(place: string): Promise<string> {
  const directory = mkdtempSync(join(place, 'seed-'));
  const store = pgliteReadStore({ directory, logger: silent });
  await store.shared();
  await store.close();
  return directory;
}
