// A process of its own that projects a log's file into a read store: prints `open`, then every position it reached.
// Arguments: the log's file, then the store: a postgres:// URL, or the folder of an embedded one.
import process from 'node:process';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { runnerOver, silent } from './read-store.ts';

const [file = '', place = ''] = process.argv.slice(2);
const store = place.startsWith('postgres://')
  ? postgresReadStore({ url: place, connections: 2 })
  : pgliteReadStore({ directory: place, logger: silent });
await store.shared();
process.stdout.write('open\n');
const runner = runnerOver(await sqliteEventLog({ file }), store, { batchSize: 5 });
let reported: string | null = null;
setInterval(() => {
  const position = runner.position();
  if (position !== reported) process.stdout.write(`at ${position}\n`);
  reported = position;
}, 1);
