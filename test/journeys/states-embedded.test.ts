// One process with embedded stores, in demo mode and paid, passes through the states in which no call can be executed or a
// part of it fails.
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { FORGOTTEN, LOG_DOWN, testStates } from '#test/support/health-state-table.ts';
import { holdBack } from '#test/support/held-appends.ts';
import { makePaidWorld, type PaidWorld } from '#test/support/paid-world.ts';

let paid: PaidWorld;
const events = (tail = '') => join(paid.dataDir, `events.db${tail}`);
const moved = () => join(paid.folder, 'moved.db');
const backup = () => join(paid.folder, 'backup.db');
/** The operator accepts the loss, as the operating guide says. */
const acceptLoss = () => rmSync(join(paid.dataDir, 'checkpoint.note'));
let unlock = () => {};

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
        logged: { level: 'error', msg: /the event log accepts no events/, cause: /locked/ },
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
          msg: /the event log accepts no events/,
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
        const service = await it.start();
        await it.coveredCall(service);
        await service.kill();
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
        const service = await it.start();
        await it.coveredCall(service);
        await service.kill();
        // SQLite reads no frame behind a damaged header.
        writeFileSync(events('-wal'), readFileSync(events('-wal')).fill(0, 0, 32));
      },
      seen: FORGOTTEN,
      repaired: 'stopped',
      repair: acceptLoss,
    },
  ],
});
