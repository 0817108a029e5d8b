import assert from 'node:assert/strict';
import { cpSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { sentenceOf } from '#src/domain/monitoring/conditions.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { freshStream, newEvents } from '#test/support/contract/event-log-fixtures.ts';
import { logDirectory } from '#test/support/log/event-log-sqlite.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';

async function inDirectory(body: (file: string) => Promise<void>): Promise<void> {
  const { file, remove } = logDirectory();
  try {
    await body(file);
  } finally {
    remove();
  }
}

const modeOf = (path: string) => statSync(path).mode & 0o777;

test('sqlite: the directory, the file and its side files are readable by the owner only', () =>
  inDirectory(async (file) => {
    const log = await sqliteEventLog({ file });
    await log.append(freshStream(), 'no_stream', newEvents(1));
    assert.equal(modeOf(dirname(file)), 0o700);
    for (const path of [file, `${file}-wal`, `${file}-shm`]) assert.equal(modeOf(path), 0o600, path);
    await log.close();
  }));

test('sqlite: an empty log has no head; `created` is the clock’s time', () =>
  inDirectory(async (file) => {
    const log = await sqliteEventLog({ file, now: () => Date.UTC(2031, 4, 6, 7, 8, 9, 10) });
    assert.equal(await log.head(), null);
    assert.deepEqual(await log.readAll({ after: null, max: 10 }), []);
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    assert.equal((await log.readStream(stream))[0]?.created, '2031-05-06T07:08:09.010Z');
    await log.close();
  }));

test('sqlite: no statement changes, deletes or replaces a stored event', () =>
  inDirectory(async (file) => {
    const log = await sqliteEventLog({ file });
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(2));
    const before = await log.readAll({ after: null, max: 10 });
    const foreign = new DatabaseSync(file);
    const columns = '(position, stream, revision, id, type, created, data, metadata)';
    for (const sql of [
      `UPDATE events SET data = '{}'`,
      'UPDATE events SET position = 9 WHERE position = 1',
      'DELETE FROM events WHERE position = 2',
      'DELETE FROM events',
      `INSERT OR REPLACE INTO events ${columns} VALUES (1, 'other-1', 0, 'i', 't', 0, '{}', '{}')`,
      `INSERT OR REPLACE INTO events ${columns} VALUES (NULL, '${stream}', 1, 'i', 't', 0, '{}', '{}')`,
      `INSERT INTO events ${columns} VALUES (1, 'other-1', 0, 'i', 't', 0, '{}', '{}')
        ON CONFLICT (position) DO UPDATE SET data = '{}'`,
    ]) {
      assert.throws(() => foreign.exec(sql), /append-only/, sql);
    }
    foreign.close();
    assert.deepEqual(await log.readAll({ after: null, max: 10 }), before);
    await log.close();
  }));

test('sqlite: a file with a newer schema is refused with that reason', () =>
  inDirectory(async (file) => {
    await (await sqliteEventLog({ file })).close();
    const foreign = new DatabaseSync(file);
    foreign.exec('PRAGMA user_version = 2');
    await assert.rejects(sqliteEventLog({ file }), /schema version 2; this program supports up to 1/);
    foreign.exec('PRAGMA user_version = 1');
    foreign.close();
    await (await sqliteEventLog({ file })).close();
  }));

test('sqlite: another application’s database, and a file that is no database, are refused and unchanged', () =>
  inDirectory(async (file) => {
    mkdirSync(dirname(file));
    const foreign = new DatabaseSync(file);
    foreign.exec('CREATE TABLE recipes (name TEXT)');
    await assert.rejects(sqliteEventLog({ file }), /is a database, but not an event log/);
    const tables = foreign.prepare('SELECT name FROM sqlite_schema').all();
    assert.deepEqual(
      tables.map((row) => row.name),
      ['recipes'],
    );
    foreign.close();
    const text = `${file}.txt`;
    writeFileSync(text, 'not a database, only some text that is long enough to be looked at. '.repeat(20));
    await assert.rejects(sqliteEventLog({ file: text }), /\.txt is damaged, or not a database/);
  }));

test('sqlite: a file that is locked at the start is unavailable, not invalid', () =>
  inDirectory(async (file) => {
    mkdirSync(dirname(file));
    const foreign = new DatabaseSync(file);
    foreign.exec('BEGIN EXCLUSIVE');
    await assert.rejects(sqliteEventLog({ file, lockTimeoutMs: 20 }), EventLogUnavailable);
    const opening = sqliteEventLog({ file });
    foreign.exec('COMMIT');
    foreign.close();
    const log = await opening;
    assert.deepEqual(await log.health(), { ok: true });
    await log.close();
  }));

test('sqlite: ten handles open a new file at the same time, and each can write', () =>
  inDirectory(async (file) => {
    const logs = await Promise.all(Array.from({ length: 10 }, () => sqliteEventLog({ file })));
    await Promise.all(logs.map((log, n) => log.append(`note-${n}x`, 'no_stream', newEvents(1))));
    for (const log of logs) assert.equal((await log.readAll({ after: null, max: 20 })).length, 10);
    await Promise.all(logs.map((log) => log.close()));
  }));

test('sqlite: a position of another log throws RangeError', () =>
  inDirectory(async (file) => {
    const log = await sqliteEventLog({ file });
    await assert.rejects(log.readAll({ after: 'C:12/P:12', max: 1 }), RangeError);
    const subscription = log.subscribeAll({ after: '12', signal: new AbortController().signal });
    await assert.rejects(subscription[Symbol.asyncIterator]().next(), RangeError);
    await log.close();
  }));

test('sqlite: an append that waits for a file that was removed makes health false at once', () =>
  inDirectory(async (file) => {
    const log = await sqliteEventLog({ file, lockTimeoutMs: 2000, writes: true });
    rmSync(file);
    // The write at the opening is still believed.
    assert.deepEqual(await log.health(), { ok: true });
    const append = log.append(freshStream(), 'no_stream', newEvents(1)).catch((error: unknown) => error);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(await log.health(), { ok: false, problem: 'replaced' });
    assert.ok((await append) instanceof EventLogUnavailable);
    await log.close();
  }));

test('sqlite: health is proven by a real write, which is one row however often it is asked', () =>
  inDirectory(async (file) => {
    const log = await sqliteEventLog({ file, writes: true });
    const other = new DatabaseSync(file);
    const version = other.prepare('PRAGMA data_version');
    const before = version.get()?.data_version;
    for (let n = 0; n < 50; n++) assert.deepEqual(await log.health(), { ok: true });
    // The write at the opening is believed for some seconds.
    assert.equal(version.get()?.data_version, before);
    assert.deepEqual(other.prepare('SELECT count(*) AS rows FROM probe').get()?.rows, 1);
    other.close();
    await log.close();
  }));

for (const [title, lost] of [
  ['the file is removed', (file: string) => rmSync(file)],
  [
    'the file is replaced by a copy',
    (file: string) => {
      cpSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
  ],
  ['its write-ahead log is removed', (file: string) => rmSync(`${file}-wal`)],
] as const) {
  test(`sqlite: ${title} while it is open: nothing is stored in a file that is lost, logged once with the cause`, () =>
    inDirectory(async (file) => {
      const logger = collectingLogger();
      const log = await sqliteEventLog({ file, lockTimeoutMs: 50, logger });
      const stream = freshStream();
      await log.append(stream, 'no_stream', newEvents(1));
      lost(file);
      for (let n = 0; n < 3; n++)
        await assert.rejects(
          log.append(stream, 0n, newEvents(1)),
          (error) => error instanceof EventLogUnavailable && /removed or replaced/.test(String(error.cause)),
        );
      assert.deepEqual(await log.health(), { ok: false, problem: 'replaced' });
      const [{ level, message, fields } = assert.fail(), ...more] = logger.lines;
      assert.deepEqual([level, message, more], ['error', sentenceOf('eventLog', 'replaced'), []]);
      assert.match(JSON.stringify(fields), /"condition":"replaced"/);
      await log.close();
    }));
}
