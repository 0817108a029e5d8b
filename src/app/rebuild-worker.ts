// Entry of a worker thread of a rebuild: projects one part, with connections of its own, until it is complete or its parent
// sends a message. It ends with its process, however that ends.
import { parentPort, workerData } from 'node:worker_threads';
import { projectTo } from '#projections/rebuild-parts.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { Cancel } from '#src/lib/time.ts';
import { type PartOfThread, withStores } from './rebuild-stores.ts';
import { plainError } from './thread-error.ts';

const port = parentPort;
if (port !== null) {
  const { config, rows }: PartOfThread = workerData;
  const ending = new Cancel();
  port.on('message', () => ending.abort());
  const ended = await withStores(config, (deps) =>
    projectTo(
      { ...deps, models: READ_MODELS },
      rows,
      (events, position) => port.postMessage({ events, position }),
      ending,
    ),
  ).then(() => null, plainError);
  port.postMessage({ ended });
}
