// The keys of an embedded deployment: a file of their own beside the event log, whose rows are never deleted. Safe for several
// processes of one machine. Deleted pages are overwritten.
import { DatabaseSync } from 'node:sqlite';
import { createPrivateFile } from '#src/lib/files/durable.ts';
import type { Vault } from '#src/ports/vault.ts';
import { sealedVault } from './sealed.ts';

const BUSY_MS = 2000;

/** `file`: created if it is missing, readable by its owner only. `now`: Unix ms. */
export function sqliteVault({ file, now }: { readonly file: string; readonly now: () => number }): Vault {
  createPrivateFile(file);
  const db = new DatabaseSync(file, { timeout: BUSY_MS });
  // No write-ahead log: a deleted key would stay in it.
  db.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON');
  db.exec(
    'CREATE TABLE IF NOT EXISTS vault_keys (id TEXT PRIMARY KEY, key BLOB NOT NULL, until INTEGER NOT NULL) STRICT',
  );
  db.exec('CREATE INDEX IF NOT EXISTS vault_keys_until ON vault_keys (until)');
  const insert = db.prepare('INSERT INTO vault_keys (id, key, until) VALUES (?, ?, ?)');
  const find = db.prepare('SELECT key FROM vault_keys WHERE id = ?');
  const remove = db.prepare('DELETE FROM vault_keys WHERE id IN (SELECT value FROM json_each(?))');
  const ended = db.prepare('DELETE FROM vault_keys WHERE until < ?');
  return sealedVault({
    async insert(id, key, untilMs) {
      insert.run(id, key, Math.ceil(untilMs));
    },
    async find(id) {
      const key = find.get(id)?.key;
      return key instanceof Uint8Array ? key : null;
    },
    async delete(ids) {
      remove.run(JSON.stringify(ids));
    },
    async deleteEnded() {
      ended.run(Math.floor(now()));
    },
    now: async () => null,
    async close() {
      db.close();
    },
  });
}
