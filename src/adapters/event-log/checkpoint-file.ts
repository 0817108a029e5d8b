// Stores the newest checkpoint in a file: restoring an older event log does not replace it.
import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { findText } from '#src/lib/files/durable.ts';
import type { CheckpointStore } from '#src/ports/checkpoint-store.ts';

/** Readable by everyone: checkpoints are public. */
const MODE = 0o644;

export function checkpointFile(path: string): CheckpointStore {
  return {
    location: `the file ${path}`,
    read: async () => findText(path),
    async write(note) {
      const beside = `${path}.${randomUUID()}.new`;
      await mkdir(dirname(path), { recursive: true });
      try {
        const file = await open(beside, 'wx', MODE);
        await file
          .writeFile(note)
          .then(() => file.sync())
          .finally(() => file.close());
        await rename(beside, path);
        const folder = await open(dirname(path));
        await folder.sync().finally(() => folder.close());
      } finally {
        await rm(beside, { force: true });
      }
    },
  };
}
