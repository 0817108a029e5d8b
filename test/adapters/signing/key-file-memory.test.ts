// The key file as the memory of the event log that its keys were announced in.
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKeyFile, keyFileMemory, readKeyFile, updateKeyFile } from '#src/adapters/signing/key-file.ts';
import { KeyFileError } from '#src/adapters/signing/owners-file.ts';
import { logMemoryContract } from '#test/support/contract/log-memory.contract.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('key-memory');
let made = 0;

function madeFile(): string {
  const path = join(folder, `${made++}.json`);
  createKeyFile(path);
  return path;
}

logMemoryContract(() => {
  const path = madeFile();
  return { memory: keyFileMemory(path), opened: () => keyFileMemory(path) };
});

const log = { id: 'an id', earlier: 0, keys: [] };

test('keys, secret, mode and unknown members stay; a rotation keeps what is remembered', () => {
  const path = madeFile();
  const before = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...before, note: 'mine' }), { mode: 0o600 });
  keyFileMemory(path).write(log);
  const { eventLog, ...rest } = JSON.parse(readFileSync(path, 'utf8'));
  assert.deepEqual([rest, eventLog], [{ ...before, note: 'mine' }, log]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  updateKeyFile(path, () => ({ fresh: ['receipt'], retired: [] }));
  assert.deepEqual(keyFileMemory(path).read(), log);
  assert.equal(readKeyFile(path).keys.length, 3);
});

test('a missing file remembers nothing; it is not made, and one with a malformed memory is refused', () => {
  const none = keyFileMemory(join(folder, 'none.json'));
  assert.equal(none.read(), null);
  assert.throws(() => none.write(log), KeyFileError);
  assert.equal(none.read(), null);
  const path = madeFile();
  const content = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...content, eventLog: { id: 7 } }), { mode: 0o600 });
  assert.throws(
    () => keyFileMemory(path).read(),
    (error: unknown) => error instanceof KeyFileError && /look at "\/eventLog/.test(error.message),
  );
});
