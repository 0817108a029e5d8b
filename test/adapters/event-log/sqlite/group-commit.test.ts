import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import {
  follow,
  freshStream,
  ids,
  newEvent,
  newEvents,
  within,
  wrongVersion,
} from '#test/support/contract/event-log-fixtures.ts';
import { logDirectory } from '#test/support/log/event-log-sqlite.ts';

type Bench = {
  readonly log: EventLog;
  /** Sizes of the durable commits so far. */
  readonly commits: number[];
  /** Another connection to the same file. */
  readonly foreign: DatabaseSync;
};

async function withBench(body: (bench: Bench) => Promise<void>): Promise<void> {
  const { file, remove } = logDirectory();
  const commits: number[] = [];
  const log = await sqliteEventLog({
    file,
    lockTimeoutMs: 600,
    onCommit: (appends) => commits.push(appends),
  });
  const foreign = new DatabaseSync(file);
  try {
    await body({ log, commits, foreign });
  } finally {
    foreign.close();
    await log.close();
    remove();
  }
}

const unavailable = (cause: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EventLogUnavailable, String(error));
  assert.match(String(error.cause), cause);
  return true;
};

/** Appends of one turn: each to its own stream, one event each, of these types. */
const turn = (log: EventLog, types: readonly string[]) =>
  Promise.allSettled(types.map((type) => log.append(freshStream(), 'no_stream', [newEvent(type)])));

test('sqlite: appends of one turn share a durable commit; appends one after the other have one each', () =>
  withBench(async ({ log, commits }) => {
    await turn(log, Array(20).fill('Noted'));
    assert.deepEqual(commits, [20]);
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    await log.append(stream, 0n, newEvents(3));
    assert.deepEqual(commits, [20, 1, 1]);
  }));

test('sqlite: a group has at most 256 appends', () =>
  withBench(async ({ log, commits }) => {
    await turn(log, Array(600).fill('Noted'));
    assert.deepEqual(commits, [256, 256, 88]);
  }));

test('sqlite: repeats and refusals cause no commit, and are not counted', () =>
  withBench(async ({ log, commits }) => {
    const stream = freshStream();
    const mine = newEvents(2);
    await log.append(stream, 'no_stream', mine);
    await log.append(stream, 'no_stream', mine);
    await assert.rejects(
      log.append(stream, 'no_stream', newEvents(1)),
      wrongVersion(stream, 'no_stream', 1n),
    );
    assert.deepEqual(commits, [1]);
    await Promise.allSettled([log.append(stream, 'no_stream', mine), log.append(stream, 1n, newEvents(1))]);
    assert.deepEqual(commits, [1, 1]);
  }));

test('sqlite: a repeat in the same group as its first call returns the same result and is stored once', () =>
  withBench(async ({ log, commits }) => {
    const stream = freshStream();
    const mine = newEvents(2);
    const [first, second] = await Promise.all([
      log.append(stream, 'no_stream', mine),
      log.append(stream, 'no_stream', mine),
    ]);
    assert.deepEqual(first, second);
    assert.deepEqual(ids(await log.readStream(stream)), ids(mine));
    assert.deepEqual(commits, [1]);
  }));

test('sqlite: a statement that fails rolls back its whole append, and no other of its group', () =>
  withBench(async ({ log, commits, foreign }) => {
    foreign.exec(`CREATE TRIGGER poison AFTER INSERT ON events WHEN NEW.type = 'Poison'
      BEGIN SELECT RAISE(ABORT, 'induced'); END`);
    const [before, poisoned, after] = [freshStream(), freshStream(), freshStream()];
    const results = await Promise.allSettled([
      log.append(before, 'no_stream', newEvents(2)),
      log.append(poisoned, 'no_stream', [newEvent(), newEvent(), newEvent('Poison')]),
      log.append(after, 'no_stream', newEvents(2)),
    ]);
    assert.deepEqual(
      results.map((result) => result.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    unavailable(/induced/)(results[1]?.status === 'rejected' && results[1].reason);
    assert.deepEqual(commits, [2]);
    assert.deepEqual(await log.readStream(poisoned), []);
    const all = await log.readAll({ after: null, max: 10 });
    assert.deepEqual(
      all.map((event) => [event.stream, Number(event.position)]),
      [
        [before, 1],
        [before, 2],
        [after, 3],
        [after, 4],
      ],
    );
  }));

test('sqlite: a fault that ends the transaction fails the whole group, and the next one succeeds', () =>
  withBench(async ({ log, commits, foreign }) => {
    // As SQLite does when the disk is full or fails.
    foreign.exec(`CREATE TRIGGER poison AFTER INSERT ON events WHEN NEW.type = 'Poison'
      BEGIN SELECT RAISE(ROLLBACK, 'induced'); END`);
    const results = await turn(log, ['Noted', 'Poison', 'Noted']);
    for (const result of results) {
      assert.ok(result.status === 'rejected');
      unavailable(/induced/)(result.reason);
    }
    assert.equal(await log.head(), null);
    assert.deepEqual(commits, []);
    assert.deepEqual(
      (await turn(log, ['Noted', 'Noted'])).map((result) => result.status),
      ['fulfilled', 'fulfilled'],
    );
    assert.deepEqual(commits, [2]);
  }));

test('sqlite: a COMMIT that fails makes every call of the group unavailable, refusals included; the next one succeeds', () =>
  withBench(async ({ log, commits, foreign }) => {
    foreign.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT;
      CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED) STRICT;
      CREATE TRIGGER poison AFTER INSERT ON events WHEN NEW.type = 'Poison'
      BEGIN INSERT INTO child VALUES (NEW.position); END`);
    const stream = freshStream();
    const results = await Promise.allSettled([
      log.append(stream, 'no_stream', newEvents(1)),
      // Conflicts with the first, whose commit fails: the result is unknown.
      log.append(stream, 'no_stream', newEvents(1)),
      log.append(freshStream(), 'no_stream', [newEvent('Poison')]),
    ]);
    for (const result of results) {
      assert.ok(result.status === 'rejected');
      unavailable(/FOREIGN KEY/)(result.reason);
    }
    assert.equal(await log.head(), null);
    assert.deepEqual(await log.health(), { ok: true });
    await log.append(stream, 'no_stream', newEvents(1));
    assert.deepEqual(commits, [1]);
  }));

test('sqlite: while another process has the lock, appends are unavailable with a cause and reads continue; later appends succeed', () =>
  withBench(async ({ log, foreign }) => {
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    const follower = follow(log, { after: null });
    const mine = newEvents(1);
    foreign.exec('BEGIN IMMEDIATE');
    let turns = 0;
    const beat = setInterval(() => turns++, 1);
    await assert.rejects(log.append(stream, 0n, mine), unavailable(/database is locked/));
    clearInterval(beat);
    assert.ok(turns > 2, `the event loop ran ${turns} turns of 1 ms in 600 ms`);
    assert.deepEqual(await log.health(), { ok: false, problem: 'unavailable' });
    assert.equal((await log.readStream(stream)).length, 1);
    const waiting = log.append(stream, 0n, mine);
    foreign.exec('COMMIT');
    assert.equal((await within(waiting, 'the lock')).nextRevision, 1n);
    assert.deepEqual(await log.health(), { ok: true });
    await follower.until(() => follower.events().length === 2, 'the event after the lock');
    await follower.stop();
  }));

test('sqlite: appends that wait for the lock share one commit', () =>
  withBench(async ({ log, commits, foreign }) => {
    foreign.exec('BEGIN IMMEDIATE');
    const waiting = [];
    for (let n = 0; n < 5; n++) {
      waiting.push(log.append(freshStream(), 'no_stream', newEvents(1)));
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    foreign.exec('COMMIT');
    await within(Promise.all(waiting), 'the lock');
    assert.deepEqual(commits, [5]);
  }));

test('sqlite: close waits for appends that wait for the lock', () =>
  withBench(async ({ log, foreign }) => {
    foreign.exec('BEGIN IMMEDIATE');
    const waiting = log.append(freshStream(), 'no_stream', newEvents(1));
    const closed = log.close();
    foreign.exec('COMMIT');
    assert.equal((await within(waiting, 'the lock')).nextRevision, 0n);
    await within(closed, 'close');
  }));

test('sqlite: a revision above the largest one is a wrong expected version', () =>
  withBench(async ({ log }) => {
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    for (const far of [2n ** 53n, 2n ** 63n - 1n, 2n ** 70n]) {
      await assert.rejects(log.append(stream, far, newEvents(1)), wrongVersion(stream, far, 0n));
    }
  }));

test('sqlite: an append that timed out on the lock is not stored later', () =>
  withBench(async ({ log, commits, foreign }) => {
    const stream = freshStream();
    foreign.exec('BEGIN IMMEDIATE');
    await assert.rejects(log.append(stream, 'no_stream', newEvents(1)), unavailable(/database is locked/));
    foreign.exec('COMMIT');
    await log.append(freshStream(), 'no_stream', newEvents(1));
    assert.deepEqual(await log.readStream(stream), []);
    assert.deepEqual(commits, [1]);
  }));
