// Stores the newest checkpoint in a file: restoring an older event log does not replace it.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCode } from '#src/lib/system-error.ts';
import type { CheckpointStore } from '#src/ports/checkpoint-store.ts';

/** Readable by everyone: checkpoints are public. */
const MODE = 0o644;

export function checkpointFile(path: string): CheckpointStore {
  return {
    location: `the file ${path}`,
    async read() {
      try {
        return await readFile(path, 'utf8');
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return null;
        throw error;
      }
    },
    async write(note) {
      const beside = `${path}.${randomUUID()}.new`;
      await mkdir(dirname(path), { recursive: true });
      try {
        await flushed(beside, 'wx', (file) => file.writeFile(note));
        await rename(beside, path);
        await flushed(dirname(path), 'r', async () => undefined);
      } finally {
        await rm(beside, { force: true });
      }
    },
  };
}

type File = Awaited<ReturnType<typeof open>>;

async function flushed(path: string, flags: string, work: (file: File) => Promise<void>): Promise<void> {
  const file = await open(path, flags, MODE);
  try {
    await work(file);
    await file.sync();
  } finally {
    await file.close();
  }
}
