// The signing keys at start.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKeyFile } from '#src/adapters/signing/key-file.ts';
import { wireKeys } from '#src/app/keys.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { world } from '#test/support/world/fakes-world.ts';

const folder = testFolder('wire-keys');

/** A key file without a checkpoint key. */
function receiptsOnly(name: string): string {
  const path = join(folder, name);
  createKeyFile(path);
  const { keys, ...rest } = JSON.parse(readFileSync(path, 'utf8'));
  const [receipt] = keys;
  writeFileSync(path, JSON.stringify({ keys: [receipt], ...rest }));
  return path;
}

async function start(it: ReturnType<typeof world>, keyFile: { path: string; create: boolean }) {
  const ending = new AbortController();
  const history = { earlierKeys: () => [], remember: () => undefined };
  const { watching, ...keys } = await wireKeys({ keyFile }, { ...it.deps, ending: ending.signal }, history);
  ending.abort();
  await watching;
  return keys;
}
const purposes = async (it: ReturnType<typeof world>) =>
  (await it.log.readStream('keys-relay')).map(({ data }) => data.purpose);
const warnings = (it: ReturnType<typeof world>) => it.logger.lines.filter(({ level }) => level === 'warn');

test('a file that is created at start has both keys, and both sign at once', async () => {
  const it = world();
  const { signer, checkpointSigner } = await start(it, { path: join(folder, 'made.json'), create: true });
  assert.deepEqual(await purposes(it), ['receipt', 'checkpoint']);
  assert.notEqual(signer.current().keyId, checkpointSigner.current()?.keyId);
  assert.deepEqual(warnings(it), []);
});

test('a file without a checkpoint key is left unchanged: no checkpoints, and a warning on how to get them', async () => {
  const it = world();
  const path = receiptsOnly('named.json');
  const text = readFileSync(path, 'utf8');
  const { signer, checkpointSigner } = await start(it, { path, create: false });
  assert.equal(readFileSync(path, 'utf8'), text);
  assert.equal(checkpointSigner.current(), null);
  assert.match(signer.current().keyId, /^[\w-]{43}$/);
  const [warning, ...more] = warnings(it);
  assert.match(warning?.message ?? '', /relay keys rotate --purpose checkpoint/);
  assert.deepEqual(more, []);
});
