// A process that projects a log's file into a Postgres and freezes in the middle of the batch that contains the event it is
// given: its rows are loaded and not yet written. Woken, it continues. Its rows bear a mark, so that whatever it wrote is
// known. Prints `frozen` before, `awake` after, and `at POSITION`.
// Arguments: the log's file, the postgres:// URL, the id of the job.
import { writeSync } from 'node:fs';
import process from 'node:process';
import type { ReadModel } from '#projections/model.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { runnerOver } from '#test/support/log/read-store.ts';

const [file = '', url = '', jobId = ''] = process.argv.slice(2);
const say = (line: string) => void writeSync(1, `${line}\n`);
let frozen = false;

const models: readonly ReadModel[] = READ_MODELS.map((model) => ({
  ...model,
  project: (...given) =>
    model.project(...given).map((change) => ({
      ...change,
      apply(row) {
        // Between the loading of rows and their writing.
        if (model.name === 'job' && change.key === jobId && !frozen) {
          frozen = true;
          say('frozen');
          process.kill(process.pid, 'SIGSTOP');
          say('awake');
        }
        const after = change.apply(row);
        return after !== null && model.name === 'job' ? { ...after, mode: 'by the half-dead' } : after;
      },
    })),
}));

const store = postgresReadStore({ url, connections: 2 });
const runner = runnerOver(await sqliteEventLog({ file }), store, { models, batchSize: 5 });
let reported: string | null = null;
setInterval(() => {
  const position = runner.position();
  if (position !== reported) say(`at ${position}`);
  reported = position;
}, 1);
