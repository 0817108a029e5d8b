import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkpointFile } from '#src/adapters/event-log/checkpoint-file.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('kept');

test('write replaces the whole file, which everyone may read', async () => {
  const path = join(folder, 'checkpoint.note');
  const kept = checkpointFile(path);
  assert.equal(kept.location, `the file ${path}`);
  assert.equal(await kept.read(), null);
  for (const note of ['a longer — note\n', 'short\n']) {
    await kept.write(note);
    assert.equal(await checkpointFile(path).read(), note);
    assert.equal(readFileSync(path, 'utf8'), note);
  }
  assert.equal(statSync(path).mode & 0o777 & ~process.umask(), 0o644 & ~process.umask());
  assert.deepEqual(readdirSync(folder), ['checkpoint.note']);
});

test('a failed read or write throws and leaves no temporary file', async () => {
  const path = join(folder, 'in-the-way');
  mkdirSync(join(path, 'not-empty'), { recursive: true });
  const kept = checkpointFile(path);
  await assert.rejects(kept.read());
  await assert.rejects(kept.write('note\n'));
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.endsWith('.new')),
    [],
  );
  await assert.rejects(checkpointFile(join(folder, 'checkpoint.note', 'below-a-file')).write('note\n'));
});
