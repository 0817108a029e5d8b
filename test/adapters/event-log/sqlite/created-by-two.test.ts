// Two processes create one file: whatever one has done when the other acts, neither takes it for a foreign file.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { openWitnessState } from '#src/adapters/witness/state-sqlite.ts';
import { logDirectory } from '#test/support/log/event-log-sqlite.ts';

type Opening = (file: string) => Promise<void>;

const OPENINGS: Readonly<Record<string, Opening>> = {
  'the event log': async (file) => (await sqliteEventLog({ file })).close(),
  'the state of a witness': async (file) => (await openWitnessState(file)).close(),
};

/** Opens `file`, and lets another open it before the statement number `at` is prepared; returns how many are. */
async function openTwice(open: Opening, file: string, at: number): Promise<number> {
  const { prepare } = DatabaseSync.prototype;
  let count = 0;
  let other: Promise<void> | undefined;
  DatabaseSync.prototype.prepare = function (...args: Parameters<typeof prepare>) {
    if (other === undefined && count++ === at) other = open(file);
    return prepare.apply(this, args);
  };
  try {
    await open(file);
    await other;
    return count;
  } finally {
    DatabaseSync.prototype.prepare = prepare;
  }
}

for (const [name, open] of Object.entries(OPENINGS))
  test(`sqlite: ${name} is created by another process between any two statements of an opening`, async () => {
    const { file, remove } = logDirectory();
    try {
      let at = 0;
      while ((await openTwice(open, join(dirname(file), `${at}.db`), at)) > at) at++;
      assert.ok(at > 3, `${at} statements`);
    } finally {
      remove();
    }
  });
