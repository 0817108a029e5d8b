// The keys of a start: what is made by itself, what is left alone, and what is told.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createKeyFile } from '#src/adapters/signing/key-file.ts';
import { wireKeys } from '#src/app/keys.ts';
import { world } from '#test/support/fakes-world.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-wire-keys-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A key file from before there were checkpoints. */
function oldFile(name: string): string {
  const path = join(folder, name);
  createKeyFile(path);
  const { keys, ...rest } = JSON.parse(readFileSync(path, 'utf8'));
  const [receipt] = keys;
  writeFileSync(path, JSON.stringify({ keys: [receipt], ...rest }));
  return path;
}

async function start(it: ReturnType<typeof world>, keyFile: { path: string; create: boolean }) {
  const ending = new AbortController();
  const { watching, ...keys } = await wireKeys({ keyFile }, { ...it.deps, ending: ending.signal });
  ending.abort();
  await watching;
  return keys;
}
const purposes = async (it: ReturnType<typeof world>) =>
  (await it.log.readStream('keys-relay')).map(({ data }) => data.purpose);
const warnings = (it: ReturnType<typeof world>) => it.logger.lines.filter(({ level }) => level === 'warn');

test('a file that is made by itself has both keys, and both sign at once', async () => {
  const it = world();
  const { signer, checkpointSigner } = await start(it, { path: join(folder, 'made.json'), create: true });
  assert.deepEqual(await purposes(it), ['receipt', 'checkpoint']);
  assert.notEqual(signer.current().keyId, checkpointSigner.current()?.keyId);
  assert.deepEqual(warnings(it), []);
});

test('our own file from before there were checkpoints gets a key for them, once', async () => {
  const it = world();
  const keyFile = { path: oldFile('own.json'), create: true };
  await start(it, keyFile);
  const text = readFileSync(keyFile.path, 'utf8');
  const { checkpointSigner } = await start(it, keyFile);
  assert.equal(readFileSync(keyFile.path, 'utf8'), text);
  assert.deepEqual(await purposes(it), ['receipt', 'checkpoint']);
  assert.notEqual(checkpointSigner.current(), null);
});

test('a file that somebody named is left as it is: no checkpoints, and a word on how to get them', async () => {
  const it = world();
  const path = oldFile('named.json');
  const text = readFileSync(path, 'utf8');
  const { signer, checkpointSigner } = await start(it, { path, create: false });
  assert.equal(readFileSync(path, 'utf8'), text);
  assert.equal(checkpointSigner.current(), null);
  assert.match(signer.current().keyId, /^[\w-]{43}$/);
  const [warning, ...more] = warnings(it);
  assert.match(warning?.message ?? '', /relay keys rotate --purpose checkpoint/);
  assert.deepEqual(more, []);
});

test('our own file that cannot be written serves on as before: no checkpoints, and the same word', async () => {
  const it = world();
  const path = oldFile('read-only.json');
  const text = readFileSync(path, 'utf8');
  // In the way of its lock, for root too, who may write anywhere.
  mkdirSync(`${path}.lock`);
  const { signer, checkpointSigner } = await start(it, { path, create: true });
  assert.equal(readFileSync(path, 'utf8'), text);
  assert.deepEqual([checkpointSigner.current(), await purposes(it)], [null, ['receipt']]);
  assert.match(signer.current().keyId, /^[\w-]{43}$/);
  assert.match(warnings(it)[0]?.message ?? '', /relay keys rotate --purpose checkpoint/);
});
