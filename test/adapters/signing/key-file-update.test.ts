// A key file is changed atomically, by one process after another, and never becomes readable by others.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  createKeyFile,
  keyFileStore,
  readKeyFile,
  updateKeyFile,
  withKeyFileLock,
} from '#src/adapters/signing/key-file.ts';
import { KeyFileError, type KeyFileFault } from '#src/adapters/signing/owners-file.ts';
import { runtimeCommand } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('key-update');

const refusedAs = (code: KeyFileFault) => (error: unknown) =>
  error instanceof KeyFileError && error.code === code;
const jsonOf = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const added = { fresh: ['receipt'], retired: [] };

function madeIn(name: string): string {
  const path = join(folder, name, 'keys.json');
  createKeyFile(path);
  return path;
}

test('a new key is added in front, retired ones are marked, and all the rest is unchanged', () => {
  const path = madeIn('change');
  const before = jsonOf(path);
  before.keys[0].madeBy = 'a later version';
  before.note = 'kept';
  writeFileSync(path, JSON.stringify(before));
  const [receipt, checkpoint] = before.keys;
  const { keys } = updateKeyFile(path, (file) => {
    assert.deepEqual(
      file.keys.map(({ keyId }) => keyId),
      [receipt.kid, checkpoint.kid],
    );
    return { fresh: ['receipt'], retired: [receipt.kid] };
  });
  const stored = jsonOf(path);
  assert.deepEqual(stored.keys.slice(1), [{ ...receipt, status: 'retired' }, checkpoint]);
  assert.deepEqual({ ...stored, keys: [] }, { ...before, keys: [] });
  assert.deepEqual(
    readKeyFile(path).keys.map(({ keyId, purpose, status }) => [keyId, purpose, status]),
    keys.map(({ keyId, purpose, status }) => [keyId, purpose, status]),
  );
  assert.deepEqual([keys[0]?.purpose, keys[0]?.status, keys.length], ['receipt', 'active', 3]);
});

test('only the file and its lock remain, both with mode 0600', () => {
  const path = madeIn('alone');
  chmodSync(path, 0o400);
  updateKeyFile(path, () => added);
  const names = readdirSync(join(folder, 'alone')).toSorted();
  assert.deepEqual(names, ['keys.json', 'keys.json.lock']);
  for (const name of names) assert.equal(statSync(join(folder, 'alone', name)).mode & 0o777, 0o600, name);
});

test('the file keeps its owner if another user changes it', () => {
  const path = madeIn('owner');
  // Without root rights, the owner runs this.
  if (process.getuid?.() === 0) chownSync(path, 12_345, 23_456);
  const before = statSync(path);
  updateKeyFile(path, () => added);
  for (const file of [path, `${path}.lock`])
    assert.deepEqual([statSync(file).uid, statSync(file).gid], [before.uid, before.gid], file);
});

test('without a change the file is not written', () => {
  const path = madeIn('untouched');
  const before = statSync(path);
  assert.equal(updateKeyFile(path, () => null).keys.length, 2);
  assert.deepEqual([statSync(path).ino, statSync(path).mtimeMs], [before.ino, before.mtimeMs]);
});

test('a store makes keys again only if the file has changed', () => {
  const path = madeIn('read-again');
  const store = keyFileStore(path);
  const before = store.read();
  assert.equal(store.read(), before);
  updateKeyFile(path, () => added);
  assert.equal(store.read().keys.length, 3);
});

test('a symbolic link is preserved: the file that it names is changed', () => {
  const path = madeIn('behind');
  const link = join(folder, 'link.json');
  symlinkSync(path, link);
  updateKeyFile(link, () => added);
  assert.ok(lstatSync(link).isSymbolicLink());
  assert.equal(readKeyFile(path).keys.length, 3);
});

test('a refused file is not changed, nor is the file if the change throws', () => {
  const path = madeIn('refused');
  const before = readFileSync(path, 'utf8');
  assert.throws(
    () =>
      updateKeyFile(path, () => {
        throw new KeyFileError('key_file_unusable', path, 'is not to be changed');
      }),
    /not to be changed/,
  );
  chmodSync(path, 0o640);
  assert.throws(() => updateKeyFile(path, () => added), refusedAs('key_file_readable_by_others'));
  assert.equal(readFileSync(path, 'utf8'), before);
  writeFileSync(path, '{', { mode: 0o600 });
  chmodSync(path, 0o600);
  assert.throws(() => updateKeyFile(path, () => added), refusedAs('key_file_malformed'));
  assert.throws(() => updateKeyFile(join(folder, 'none.json'), () => added), refusedAs('key_file_missing'));
  assert.equal(readFileSync(path, 'utf8'), '{');
});

test('key_file_busy: another process has the lock', () => {
  const path = madeIn('busy');
  const { uid, gid } = statSync(path);
  const alone = (work: () => unknown) => withKeyFileLock(path, { uid, gid }, work, 50);
  assert.throws(() => alone(() => alone(() => undefined)), refusedAs('key_file_busy'));
  assert.equal(
    alone(() => 'free again'),
    'free again',
  );
});

const script = new URL('./change-key-file.ts', import.meta.url).pathname;
function processOn(path: string, what: string): ChildProcess {
  const [command, args] = runtimeCommand(script, [path, what]);
  return spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}
const endOf = (child: ChildProcess) =>
  new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code));
  });

test('two processes that add keys at the same time lose none', async () => {
  const path = madeIn('race');
  const codes = await Promise.all([processOn(path, '20'), processOn(path, '20')].map(endOf));
  assert.deepEqual(codes, [0, 0]);
  const { keys } = readKeyFile(path);
  assert.equal(keys.length, 42);
});

test('the lock of a killed process is released', async () => {
  const path = madeIn('killed');
  const holder = processOn(path, 'hold');
  const ended = endOf(holder);
  await new Promise((resolve) => holder.stdout?.once('data', resolve));
  const { uid, gid } = statSync(path);
  try {
    assert.throws(() => withKeyFileLock(path, { uid, gid }, () => undefined, 20), refusedAs('key_file_busy'));
  } finally {
    process.kill(holder.pid ?? 0, 'SIGKILL');
    await ended;
  }
  assert.equal(updateKeyFile(path, () => added).keys.length, 3);
});
