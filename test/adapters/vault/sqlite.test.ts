import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { sqliteVault } from '#src/adapters/vault/sqlite.ts';
import type { Vault } from '#src/ports/vault.ts';
import { vaultContract } from '#test/support/vault.contract.ts';

const folder = mkdtempSync(join(tmpdir(), 'vault-'));
const file = join(folder, 'vault.db');
const opened: Vault[] = [];
const open = async () => {
  const vault = sqliteVault({ file, now: Date.now });
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

test('the file is readable by its owner only, and a deleted key is not in it any more', async () => {
  const own = mkdtempSync(join(tmpdir(), 'vault-'));
  const path = join(own, 'vault.db');
  const vault = sqliteVault({ file: path, now: Date.now });
  const id = 'the-name-of-a-key';
  await vault.put({ name: id, text: 'x', untilMs: Date.now() + 60_000, seat: null });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.ok(readFileSync(path).includes(id));
  await vault.remove([id]);
  await vault.close();
  assert.ok(!readFileSync(path).includes(id));
  rmSync(own, { recursive: true, force: true });
});
