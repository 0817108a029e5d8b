// P2: durable appends with an expected revision against a raw SQLite loop with group commit: the same rows, one synced
// transaction for all callers of a tick.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { interleaved, type Measure, ratioAtLeast, row, timed } from './rounds.ts';

const CALLERS = 32;
const DATA = { v: 1, jobId: 'job_0000000000000000000000000', note: 'x'.repeat(300) };
const METADATA = { $correlationId: 'job_0000000000000000000000000' };

type Append = (stream: string, revision: number) => Promise<unknown>;

/** Events/s; each caller appends to a stream of its own, each event at the revision that the last one left. */
async function appends(append: Append, each: number): Promise<number> {
  const caller = async () => {
    const stream = `job-${randomUUID().replaceAll('-', '')}`;
    for (let revision = 0; revision < each; revision++) await append(stream, revision);
  };
  const ms = await timed(() => Promise.all(Array.from({ length: CALLERS }, caller)));
  return (CALLERS * each) / (ms / 1000);
}

export const logMeasure: Measure = {
  name: 'P2',
  title: 'durable appends to the embedded event log',
  async run(options) {
    const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
    const each = options.count(400, 60, 5);
    const log = await sqliteEventLog({ file: join(folder, 'events.db') });
    const raw = rawLog(join(folder, 'raw.db'));
    const turns = { ours: 0, peer: 0 };
    try {
      const sides = {
        ours() {
          turns.ours++;
          return appends((stream, revision) => {
            const event = { id: randomUUID(), type: 'AttemptMade', data: DATA, metadata: METADATA };
            return log.append(stream, revision === 0 ? 'no_stream' : BigInt(revision - 1), [event]);
          }, each);
        },
        peer() {
          turns.peer++;
          return appends(raw.append, each);
        },
      };
      const rounds = await interleaved(options, sides);
      const stored = (await log.readAll({ after: null, max: 10_000_000 })).length;
      if (stored !== turns.ours * each * CALLERS || raw.count() !== turns.peer * each * CALLERS)
        throw new Error(`${stored} and ${raw.count()} events are stored`);
      const titles = {
        measure: 'P2',
        title: `events, c = ${CALLERS}`,
        unit: '/s',
        peer: 'raw SQLite, group commit',
      };
      const notes = [
        'raw SQLite: node:sqlite, synchronous = FULL, a table with the same columns and constraints, one commit for the callers of a tick.',
      ];
      return { rows: [row(titles, ratioAtLeast(0.9), rounds)], notes };
    } finally {
      raw.close();
      await log.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function rawLog(file: string) {
  const database = new DatabaseSync(file);
  database.exec(`pragma journal_mode = wal; pragma synchronous = full;
    create table events (position integer primary key autoincrement, id text not null unique, stream text not null,
      revision integer not null, type text not null, data text not null, metadata text not null, created text not null,
      unique (stream, revision))`);
  const insert = database.prepare(
    'insert into events (id, stream, revision, type, data, metadata, created) values (?, ?, ?, ?, ?, ?, ?)',
  );
  let waiting: { readonly row: (string | number)[]; readonly done: () => void }[] = [];
  const flush = () => {
    const batch = waiting;
    waiting = [];
    database.exec('begin immediate');
    for (const { row: values } of batch) insert.run(...values);
    database.exec('commit');
    for (const { done } of batch) done();
  };
  return {
    append: (stream: string, revision: number) =>
      new Promise<void>((done) => {
        if (waiting.length === 0) setImmediate(flush);
        const row = [
          randomUUID(),
          stream,
          revision,
          'AttemptMade',
          JSON.stringify(DATA),
          JSON.stringify(METADATA),
          new Date().toISOString(),
        ];
        waiting.push({ row, done });
      }),
    count: () => Number(database.prepare('select count(*) as n from events').get()?.n),
    close: () => database.close(),
  };
}
