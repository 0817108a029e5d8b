// Makes PGlite's directory in a worker: initdb takes seconds, blocks its thread and peaks near 1 GB, all of which end
// with the worker. Run by pglite.ts; as a module of its own it is what the worker executes.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';

/** No other process reads these files and nothing in them must survive a power loss: they are replayed then. */
export const PGLITE_SETTINGS = [
  'shared_buffers=16MB',
  'max_connections=8',
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'wal_buffers=1MB',
  'min_wal_size=32MB',
  'max_wal_size=128MB',
];

type Answer = { readonly failed: string | null };

export async function makePgliteDirectory(files: string): Promise<void> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { makePgliteDirectory: files } });
  try {
    const answer = await new Promise<Answer>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', (code) => reject(new Error(`the worker ended with ${code} and no answer`)));
    });
    if (answer.failed !== null) throw new Error(`the embedded read models' directory: ${answer.failed}`);
  } finally {
    await worker.terminate();
  }
}

async function inWorker(files: string): Promise<Answer> {
  try {
    const pg = await PGlite.create({ dataDir: files, postgresqlconf: PGLITE_SETTINGS });
    await pg.close();
    return { failed: null };
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

if (!isMainThread && typeof workerData?.makePgliteDirectory === 'string') {
  parentPort?.postMessage(await inWorker(workerData.makePgliteDirectory));
}
