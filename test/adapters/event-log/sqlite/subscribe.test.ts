import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openLogFile } from '#src/adapters/event-log/sqlite/file.ts';
import { type LogReader, logReader } from '#src/adapters/event-log/sqlite/read.ts';
import { CommitWatch, IDLE_MS, sqliteSubscription } from '#src/adapters/event-log/sqlite/subscribe.ts';
import { within } from '#test/support/contract/event-log-fixtures.ts';
import { logDirectory } from '#test/support/log/event-log-sqlite.ts';

type Bench = {
  readonly watch: CommitWatch;
  readonly reader: LogReader;
  /** Stores the next event of one stream by another connection. */
  store(): void;
  /** Subscribes through `reader` until that many events arrived, and returns them. */
  take(count: number, reader: LogReader): Promise<string[]>;
};

async function withBench(body: (bench: Bench) => Promise<void>): Promise<void> {
  const { file, remove } = logDirectory();
  const { db } = openLogFile(file);
  const foreign = new DatabaseSync(file);
  const watch = new CommitWatch(db, IDLE_MS.alone);
  const insert = foreign.prepare(
    `INSERT INTO events (stream, revision, id, type, created, data, metadata) VALUES ('a-1', ?, ?, 'Noted', 0, '{}', '{}')`,
  );
  let stored = 0;
  const store = () => {
    insert.run(stored, `event ${stored}`);
    stored++;
  };
  const take = async (count: number, reader: LogReader) => {
    const abort = new AbortController();
    const taken: string[] = [];
    const dependencies = { read: async <T>(run: () => T) => run(), reader, watch };
    for await (const message of sqliteSubscription(dependencies, { after: null, signal: abort.signal })) {
      taken.push(message.kind === 'event' ? message.event.id : message.kind);
      if (taken.filter((one) => one !== 'caught_up').length === count) abort.abort();
    }
    return taken;
  };
  try {
    await body({
      watch,
      reader: logReader(db, true),
      store,
      take: (...args) => within(take(...args), 'the events'),
    });
  } finally {
    watch.stop();
    foreign.close();
    db.close();
    remove();
  }
}

test('sqlite: a commit of another connection just after a page was read is noticed', () =>
  withBench(async ({ reader, store, take }) => {
    store();
    let pages = 0;
    const unlucky: LogReader = {
      ...reader,
      page(...args) {
        const page = reader.page(...args);
        if (pages++ < 3) store();
        return page;
      },
    };
    assert.deepEqual(await take(4, unlucky), ['event 0', 'caught_up', 'event 1', 'event 2', 'event 3']);
  }));

test('sqlite: who looks at the log has subscribers woken by a commit of another connection', () =>
  withBench(async ({ watch, store }) => {
    const { signal } = new AbortController();
    // The first count notes where it begins.
    watch.count();
    let isWoken = false;
    const waiting = watch.changed(watch.count(), signal).then(() => {
      isWoken = true;
    });
    watch.look();
    await Promise.resolve();
    assert.equal(isWoken, false, 'nothing was committed');
    store();
    watch.look();
    // No poll comes between these steps.
    for (let step = 0; step < 3; step++) await Promise.resolve();
    assert.equal(isWoken, true);
    await waiting;
  }));
