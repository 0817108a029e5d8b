// Files that a crash leaves whole, and the lock on one.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createPrivateFile, findText, replaceFile, sizeOf } from '#src/lib/files/durable.ts';
import { acquireFileLock } from '#src/lib/files/file-lock.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('lib-files');
const modeOf = (path: string) => statSync(path).mode & 0o777;

test('a file is replaced as a whole, is for its owner only, and leaves nothing beside it', () => {
  const path = join(folder, 'replaced');
  assert.equal(findText(path), null);
  for (const text of ['first', 'second']) {
    replaceFile(path, text);
    assert.equal(findText(path), text);
  }
  assert.equal(modeOf(path), 0o600);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('replaced')),
    ['replaced'],
  );
});

test('a fault of the system other than the absence of a file is thrown', () => {
  const path = join(folder, 'folder', 'file');
  assert.throws(() => replaceFile(path, 'text'), { code: 'ENOENT' });
  assert.throws(() => findText(folder), { code: 'EISDIR' });
});

test('a private file is created once, and an existing one is unchanged', () => {
  const path = join(folder, 'private');
  assert.equal(createPrivateFile(path), true);
  assert.equal(modeOf(path), 0o600);
  writeFileSync(path, 'content');
  assert.equal(createPrivateFile(path), false);
  assert.equal(findText(path), 'content');
});

test('a file lock is held by one owner until it is released', () => {
  const path = join(folder, 'locked');
  const created: string[] = [];
  const take = () => acquireFileLock(path, { onCreate: (file) => created.push(file) });
  const first = take();
  assert.ok(first !== null);
  assert.equal(take(), null);
  first.release();
  const second = take();
  assert.ok(second !== null);
  second.release();
  assert.deepEqual([created, existsSync(path), modeOf(first.file)], [[`${path}.lock`], false, 0o600]);
});

test('a lock file that the system does not let be used is reported to the operator, with its name', () => {
  const path = join(folder, 'unlockable');
  mkdirSync(`${path}.lock`);
  assert.throws(
    () => acquireFileLock(path),
    (error: unknown) =>
      error instanceof OperatorError && error.message.startsWith(`${path}.lock cannot be opened for writing`),
  );
});

test('a file that cannot be looked at is not taken for a missing one', () => {
  const path = join(folder, 'sized');
  assert.equal(sizeOf(path), null);
  writeFileSync(path, 'four');
  assert.equal(sizeOf(path), 4);
  const circle = join(folder, 'circle');
  symlinkSync(circle, circle);
  assert.throws(() => sizeOf(circle), { code: 'ELOOP' });
});
