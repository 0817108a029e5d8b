import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { logMemoryFile } from '#src/adapters/event-log/log-memory-file.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { logMemoryContract } from '#test/support/contract/log-memory.contract.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('log-memory');
let made = 0;

logMemoryContract(() => {
  const path = join(folder, `${made++}`, 'event-log.json');
  return { memory: logMemoryFile(path), opened: () => logMemoryFile(path) };
});

test('other content is refused, with the file', () => {
  const path = join(folder, 'other.json');
  for (const content of ['', '{}', '{"id":1,"earlier":0,"keys":[]}', 'nothing']) {
    writeFileSync(path, content);
    assert.throws(
      () => logMemoryFile(path).read(),
      (error: unknown) => error instanceof OperatorError && error.message.startsWith(`${path} is damaged`),
    );
  }
});

test('a failed write throws and leaves no temporary file', () => {
  const below = join(folder, 'taken');
  mkdirSync(join(below, 'event-log.json', 'folder'), { recursive: true });
  assert.throws(() => logMemoryFile(join(below, 'event-log.json')).write({ id: null, earlier: 0, keys: [] }));
  assert.deepEqual(readdirSync(below), ['event-log.json']);
});
