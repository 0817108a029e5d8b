// One process with embedded stores, in demo mode and paid, passes through the states in which no call can be executed or a
// part of it fails.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { holdBack } from '#test/support/log/held-appends.ts';
import { waitFor } from '#test/support/process/service.ts';
import { FORGOTTEN, LOG_DOWN, type StatesWorld, testStates } from '#test/support/world/health-state-table.ts';
import { makePaidWorld, type PaidWorld } from '#test/support/world/paid-world.ts';

let paid: PaidWorld;
const events = (tail = '') => join(paid.dataDir, `events.db${tail}`);
const moved = () => join(paid.folder, 'moved.db');
const backup = () => join(paid.folder, 'backup.db');
/** The operator accepts the loss, as the runbook says. */
const acceptLoss = () => rmSync(join(paid.dataDir, 'checkpoint.note'));
let unlock = () => {};
/** A call whose checkpoint is kept outside of the log, then kill -9. */
async function callAndKill(it: StatesWorld): Promise<void> {
  const service = await it.start();
  const covering = parseCheckpoint(await it.coveredCall(service))?.size ?? assert.fail();
  await waitFor('the checkpoint is kept', () => {
    const kept = parseCheckpoint(readFileSync(join(paid.dataDir, 'checkpoint.note'), 'utf8'));
    return (kept?.size ?? 0) >= covering;
  });
  await service.kill();
}

testStates('one process with embedded stores', {
  needs: { skip: false },
  holdStarts: () => holdBack(paid.dataDir, 'JobStarted'),
  async makeTier(script, settings) {
    paid = await makePaidWorld({ embedded: true, spawning: { script } });
    return {
      paid,
      start: (env) => paid.start({ ...settings, ...env }, 'listening'),
      keyFile: join(paid.dataDir, 'keys.json'),
      env: { DATA_DIR: paid.dataDir },
      end: () => paid.end(),
    };
  },
  states: (it) => [
    {
      name: 'another process keeps the event log locked',
      isFullOnly: true,
      made: 'running',
      make() {
        const lock = new DatabaseSync(events(), { timeout: 20_000 });
        lock.exec('BEGIN IMMEDIATE');
        unlock = () => {
          lock.exec('ROLLBACK');
          lock.close();
        };
      },
      seen: {
        ...LOG_DOWN,
        logged: { level: 'error', msg: /the event log accepts no events/i, cause: /locked/ },
      },
      repaired: 'running',
      repair: () => unlock(),
    },
    {
      name: 'the file of the event log is moved away while it is open',
      isFullOnly: true,
      made: 'running',
      make: () => renameSync(events(), moved()),
      seen: {
        ...LOG_DOWN,
        reason: 'replaced',
        message: /removed or replaced while the service runs: no call is executed until/,
        logged: {
          level: 'error',
          msg: /the event log accepts no events/i,
          cause: /was removed or replaced while it was open/,
        },
      },
      repaired: 'stopped',
      repair: () => renameSync(moved(), events()),
    },
    {
      name: 'acknowledged events are missing: an older backup',
      isFullOnly: true,
      made: 'stopped',
      async make() {
        cpSync(events(), backup());
        await callAndKill(it);
        for (const tail of ['', '-wal', '-shm']) rmSync(events(tail), { force: true });
        cpSync(backup(), events());
      },
      seen: FORGOTTEN,
      repaired: 'stopped',
      repair: acceptLoss,
    },
    {
      name: 'acknowledged events are missing: the write-ahead log is damaged',
      made: 'stopped',
      async make() {
        await callAndKill(it);
        // SQLite reads no frame behind a damaged header.
        writeFileSync(events('-wal'), readFileSync(events('-wal')).fill(0, 0, 32));
      },
      seen: FORGOTTEN,
      repaired: 'stopped',
      repair: acceptLoss,
    },
  ],
});
