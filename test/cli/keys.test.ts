// relay keys init: creates a key file that only its owner can read, and never changes an existing one.
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { runCli } from '#test/support/process/cli.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('keys-test');

const keyIds = (path: string) =>
  JSON.parse(readFileSync(path, 'utf8')).keys.map(({ kid }: { kid: string }) => kid);

describe('relay keys init', () => {
  test('--file: creates it with mode 0600, and prints the key ids but no secret', async () => {
    const path = join(folder, 'named', 'keys.json');
    const { code, stdout, stderr } = await runCli(['keys', 'init', '--file', path]);
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const { keys, hmacSecret } = JSON.parse(readFileSync(path, 'utf8'));
    assert.equal(keys.length, 2);
    for (const { kid, purpose, d } of keys) {
      assert.ok(stdout.includes(`${purpose} key ${kid}`) && !stdout.includes(d), stdout);
    }
    assert.ok(stdout.includes(path) && !stdout.includes(hmacSecret));
  });

  test('--json: the file and its key ids', async () => {
    const path = join(folder, 'json.json');
    const { code, stdout } = await runCli(['keys', 'init', '--file', path, '--json']);
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), { file: path, keyIds: keyIds(path) });
  });

  test('an existing file is refused and left unchanged', async () => {
    const path = join(folder, 'precious');
    writeFileSync(path, 'precious');
    const { code, stdout, stderr } = await runCli(['keys', 'init', '--file', path]);
    assert.deepEqual([code, stdout, stderr], [2, '', `relay: key file ${path} is there already\n`]);
    assert.equal(readFileSync(path, 'utf8'), 'precious');
  });

  test('a path where no file can be created', async () => {
    const path = join(folder, 'precious', 'below.json');
    const { code, stderr } = await runCli(['keys', 'init', '--file', path]);
    assert.equal(code, 2);
    assert.match(stderr, /^relay: [^\n]+\n$/);
  });

  test('without --file: at SIGNING_KEYS_FILE, or else in DATA_DIR', async () => {
    const named = join(folder, 'by-variable.json');
    const data = join(folder, 'data');
    const cases = [
      [{ SIGNING_KEYS_FILE: named, DATA_DIR: data }, named],
      [{ DATA_DIR: data }, join(data, 'keys.json')],
    ] as const;
    for (const [env, path] of cases) {
      const { code, stdout } = await runCli(['keys', 'init', '--json'], { env });
      assert.equal(code, 0);
      assert.deepEqual(JSON.parse(stdout), { file: path, keyIds: keyIds(path) });
    }
  });
});
