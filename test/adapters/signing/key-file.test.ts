import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createPublicKey, verify } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { calculateJwkThumbprint, exportJWK, importJWK } from 'jose';
import { createKeyFile, openKeyFile, readKeyFile } from '#src/adapters/signing/key-file.ts';
import { KeyFileError, type KeyFileFault } from '#src/adapters/signing/owners-file.ts';
import { runtimeCommand } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('keys');

const refusedAs = (code: KeyFileFault) => (error: unknown) =>
  error instanceof KeyFileError && error.code === code;
const jsonOf = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
function fileWith(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}
function changed(name: string, change: (file: ReturnType<typeof jsonOf>) => void): string {
  const source = join(folder, `source-${name}`);
  createKeyFile(source);
  const file = jsonOf(source);
  change(file);
  return fileWith(name, JSON.stringify(file));
}

test('key file: created with active keys for receipts and checkpoints and a secret of 32 bytes, mode 0600', () => {
  const path = join(folder, 'new', 'deep', 'keys.json');
  const { keys, hmacSecret } = openKeyFile({ path, create: true });
  assert.deepEqual(
    keys.map(({ purpose, status }) => ({ purpose, status })),
    [
      { purpose: 'receipt', status: 'active' },
      { purpose: 'checkpoint', status: 'active' },
    ],
  );
  assert.equal(hmacSecret.length, 32);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(join(folder, 'new', 'deep')).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(join(folder, 'new', 'deep')), ['keys.json']);
});

test('key file: opened again it is the same, and two files share no key', () => {
  const path = join(folder, 'again.json');
  const first = openKeyFile({ path, create: true });
  const second = openKeyFile({ path, create: true });
  assert.deepEqual(second.hmacSecret, first.hmacSecret);
  assert.deepEqual(
    second.keys.map((key) => key.keyId),
    first.keys.map((key) => key.keyId),
  );
  const other = openKeyFile({ path: join(folder, 'other.json'), create: true });
  assert.notDeepEqual(other.hmacSecret, first.hmacSecret);
  assert.notEqual(other.keys[0]?.keyId, first.keys[0]?.keyId);
});

test('key_file_missing: no file is created unless `create` is true', () => {
  const path = join(folder, 'absent.json');
  assert.throws(() => openKeyFile({ path, create: false }), refusedAs('key_file_missing'));
  assert.throws(() => openKeyFile({ path, create: false }), /SIGNING_KEYS_FILE/);
  assert.ok(!readdirSync(folder).includes('absent.json'));
});

test('key_file_exists: an existing file is never replaced', () => {
  const path = join(folder, 'kept.json');
  createKeyFile(path);
  const before = readFileSync(path, 'utf8');
  assert.throws(() => createKeyFile(path), refusedAs('key_file_exists'));
  assert.equal(readFileSync(path, 'utf8'), before);
});

test('key_file_readable_by_others: refused for any right of group or others', () => {
  for (const mode of [0o640, 0o604, 0o660, 0o610, 0o602]) {
    const path = join(folder, `open-${mode.toString(8)}.json`);
    createKeyFile(path);
    chmodSync(path, mode);
    assert.throws(() => readKeyFile(path), refusedAs('key_file_readable_by_others'), mode.toString(8));
  }
});

test('key_file_malformed: other content is refused, and the message contains no part of it', () => {
  const canary = 'CANARYcanaryCANARYcanaryCANARYcanaryCANARY0';
  const cases: Record<string, string> = {
    'no-json': `{"hmacSecret": "${canary}"`,
    'no-object': '[]',
    'no-keys': changedText((file) => (file.keys = [])),
    'short-secret': changedText((file) => (file.hmacSecret = 'c2hvcnQ')),
    'not-canonical': changedText((file) => (file.hmacSecret = `${canary.slice(0, 42)}B`)),
    'other-curve': changedText((file) => (file.keys[0].crv = 'X25519')),
    'no-status': changedText((file) => delete file.keys[0].status),
    'wrong-kid': changedText((file) => (file.keys[0].kid = canary)),
    'wrong-x': changedText((file) => (file.keys[0].x = canary)),
    'wrong-d': changedText((file) => (file.keys[0].d = canary)),
    twice: changedText((file) => file.keys.push(file.keys[0])),
  };
  for (const [name, text] of Object.entries(cases)) {
    const path = fileWith(`${name}.json`, text);
    assert.throws(
      () => readKeyFile(path),
      (error) =>
        refusedAs('key_file_malformed')(error) && error instanceof Error && !error.message.includes('CANARY'),
      name,
    );
  }
});

let texts = 0;
function changedText(change: (file: ReturnType<typeof jsonOf>) => void): string {
  return readFileSync(changed(`text-${texts++}.json`, change), 'utf8');
}

test('key file: keys of unknown purpose, retired keys and unknown members are kept, in the order of the file', () => {
  const other = join(folder, 'more.json');
  createKeyFile(other);
  const path = changed('purposes.json', (file) => {
    file.keys[0].status = 'retired';
    file.keys.push({ ...jsonOf(other).keys[0], purpose: 'witness', madeBy: 'a later version' });
    file.note = 'kept out of the way';
  });
  assert.deepEqual(
    readKeyFile(path).keys.map(({ purpose, status }) => `${purpose} ${status}`),
    ['receipt retired', 'checkpoint active', 'witness active'],
  );
});

test('key file: jose imports the key, agrees on the thumbprint and on the public half', async () => {
  const path = join(folder, 'jose.json');
  createKeyFile(path);
  const [jwk] = jsonOf(path).keys;
  const [key] = readKeyFile(path).keys;
  assert.equal(await calculateJwkThumbprint(jwk), key?.keyId);
  const imported = await exportJWK(await importJWK({ ...jwk, ext: true }, 'EdDSA'));
  assert.equal(imported.x, key?.x);
  assert.equal(imported.d, jwk.d);
});

test('key file: a receipt key has a key for outbound requests, always the same, and no other key has one', async () => {
  const path = join(folder, 'agent.json');
  createKeyFile(path);
  const [receipt, checkpoint] = readKeyFile(path).keys;
  const key = receipt?.agentKey ?? assert.fail('the receipt key has none');
  assert.equal(checkpoint?.agentKey, null);
  assert.equal(readKeyFile(path).keys[0]?.agentKey?.keyId, key.keyId);
  assert.equal(await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x: key.x }), key.keyId);
  assert.notEqual(key.x, receipt?.x);
  const message = new TextEncoder().encode('m');
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key.x }, format: 'jwk' });
  assert.ok(verify(null, message, publicKey, await key.sign(message)));
  assert.ok(!readFileSync(path, 'utf8').includes(key.x));
});

test('key file: processes that start at the same time have one file and one secret', async () => {
  const path = join(folder, 'race', 'keys.json');
  const script = new URL('./open-key-file.ts', import.meta.url).pathname;
  const answers = await Promise.all(Array.from({ length: 4 }, () => output(runtimeCommand(script, [path]))));
  assert.equal(
    answers.filter((answer) => /^[0-9a-f]{64} [\w-]{43}\n$/.test(answer)).length,
    4,
    answers.join(),
  );
  assert.equal(new Set(answers).size, 1);
  assert.deepEqual(readdirSync(join(folder, 'race')), ['keys.json']);
});

function output([command, args]: readonly [string, readonly string[]]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    child.on('error', reject);
    child.on('close', () => resolve(text));
  });
}

test('key file: a path below a file is reported as unusable', () => {
  const path = join(fileWith('not-a-folder', ''), 'keys.json');
  assert.throws(() => createKeyFile(path), refusedAs('key_file_unusable'));
});
