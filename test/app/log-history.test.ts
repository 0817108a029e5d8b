// Which event log is in use is remembered beside it, also after writes that failed.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { logHistory } from '#src/app/log-history.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { collectingLogger, manualClock } from '#test/support/world/fakes.ts';

const ID = '0f8fad5b-d9cb-469f-a165-70867728950e';

test('a failed write is repeated once a minute until it works, and logged once', () => {
  const dataDir = testFolder('log-history');
  const keyFile = { path: join(dataDir, 'keys', 'keys.json'), create: false };
  const { remember } = logHistory({ dataDir, eventStoreUrl: null, keyFile });
  const clock = manualClock();
  const logger = collectingLogger();
  const path = join(dataDir, 'event-log.json');
  // As every read of the keys does.
  const look = () => remember(ID, [], { clock, logger });
  const isWritten = () => existsSync(path) && JSON.parse(readFileSync(path, 'utf8')).id === ID;

  mkdirSync(path);
  for (let n = 0; n < 3; n++) {
    look();
    clock.advance(60_000);
  }
  assert.deepEqual(
    logger.lines.map(({ level, message }) => [
      level,
      /^The event log in use cannot be remembered: /.test(message),
    ]),
    [['warn', true]],
  );
  look();
  rmSync(path, { recursive: true });
  clock.advance(59_999);
  look();
  assert.equal(existsSync(path), false, 'not more than once a minute');
  clock.advance(1);
  look();
  assert.ok(isWritten());
  assert.deepEqual(logger.lines.length, 2);
  assert.equal(logger.lines.at(-1)?.level, 'info');

  rmSync(path);
  clock.advance(60_000);
  look();
  assert.equal(existsSync(path), false, 'it is written when it has changed');
});
