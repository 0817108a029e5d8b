import assert from 'node:assert/strict';
import { createCipheriv, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqliteVault } from '#src/adapters/vault/sqlite.ts';
import type { Vault } from '#src/ports/vault.ts';
import { vaultContract } from '#test/support/contract/vault.contract.ts';
import { hashWith } from '#test/support/given/primitives.ts';

const folder = mkdtempSync(join(tmpdir(), 'vault-'));
const file = join(folder, 'vault.db');
const opened: Vault[] = [];
const keyedHash = hashWith('secret');
const open = async () => {
  const vault = sqliteVault({ file, keyedHash, now: Date.now });
  opened.push(vault);
  return vault;
};

vaultContract({
  name: 'in a file',
  needs: { skip: false },
  open,
  again: open,
  async end() {
    for (const vault of opened) await vault.close();
    rmSync(folder, { recursive: true, force: true });
  },
});

test('the file is readable by its owner only, and a deleted text is not in it any more', async () => {
  const own = mkdtempSync(join(tmpdir(), 'vault-'));
  const path = join(own, 'vault.db');
  const vault = sqliteVault({ file: path, keyedHash, now: Date.now });
  const id = 'the-name-of-a-key';
  await vault.put({ name: id, text: 'the text', untilMs: Date.now() + 60_000, seat: null });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.ok(readFileSync(path).includes(id) && !readFileSync(path).includes('the text'));
  await vault.remove([id]);
  await vault.close();
  assert.ok(!readFileSync(path).includes(id));
  rmSync(own, { recursive: true, force: true });
});

test('what a release sealed that stored the ciphertext in the event log is read, and what is sealed again stays readable', async () => {
  const own = mkdtempSync(join(tmpdir(), 'vault-'));
  const path = join(own, 'vault.db');
  const db = new DatabaseSync(path);
  db.exec(
    'CREATE TABLE vault_keys (id TEXT PRIMARY KEY, key BLOB NOT NULL, until INTEGER NOT NULL, holder TEXT) STRICT',
  );
  const key = randomBytes(32);
  db.prepare('INSERT INTO vault_keys VALUES (?, ?, ?, ?)').run('job_1', key, Date.now() + 60_000, 'holder');
  db.close();
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const bytes = Buffer.concat([iv, cipher.update('the text'), cipher.final(), cipher.getAuthTag()]);
  const inLog = `job_1.${bytes.toString('base64url')}`;
  const changed = Buffer.from(bytes);
  changed.writeUInt8(changed.readUInt8(20) ^ 1, 20);
  for (let n = 0; n < 2; n++) {
    const vault = sqliteVault({ file: path, keyedHash, now: Date.now });
    assert.equal(await vault.take(inLog), 'the text');
    assert.equal(await vault.take(`job_1.${changed.toString('base64url')}`), null);
    assert.deepEqual(await vault.held('holder'), [null]);
    const seat = { holder: 'holder', max: 10, amount: 3n };
    const again = await vault.put({ name: 'job_1', text: 'the text', untilMs: Date.now() + 60_000, seat });
    assert.equal(await vault.take(again ?? ''), 'the text');
    await vault.close();
  }
  rmSync(own, { recursive: true, force: true });
});

test('a copy of the file cannot be read without the secret of the service', async () => {
  const own = mkdtempSync(join(tmpdir(), 'vault-'));
  const path = join(own, 'vault.db');
  const vault = sqliteVault({ file: path, keyedHash, now: Date.now });
  const sealed = await vault.put({ name: 'job_2', text: 'x', untilMs: Date.now() + 60_000, seat: null });
  const other = sqliteVault({ file: path, keyedHash: hashWith('another'), now: Date.now });
  assert.deepEqual([await vault.take(sealed ?? ''), await other.take(sealed ?? '')], ['x', null]);
  for (const each of [vault, other]) await each.close();
  rmSync(own, { recursive: true, force: true });
});
