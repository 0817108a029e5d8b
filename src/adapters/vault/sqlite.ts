// The sealed texts of an embedded deployment: a file of their own beside the event log, whose rows are never deleted. Safe for several
// processes of one machine. Deleted pages are overwritten.
import { DatabaseSync } from 'node:sqlite';
import { batched } from '#src/lib/batched.ts';
import { createPrivateFile } from '#src/lib/files/durable.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import type { Vault } from '#src/ports/vault.ts';
import { sealedVault, type TextStore } from './sealed.ts';

const BUSY_MS = 2000;

/** `file`: created if it is missing, readable by its owner only. `now`: the clock of the store, Unix ms. */
export function sqliteVault({
  file,
  keyedHash,
  now,
}: {
  readonly file: string;
  readonly keyedHash: KeyedHash;
  readonly now: () => number;
}): Vault {
  createPrivateFile(file);
  const db = new DatabaseSync(file, { timeout: BUSY_MS });
  // No write-ahead log: a deleted key would stay in it.
  db.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON');
  db.exec(`CREATE TABLE IF NOT EXISTS vault_keys
    (id TEXT PRIMARY KEY, key BLOB NOT NULL, until INTEGER NOT NULL, holder TEXT) STRICT;
    CREATE INDEX IF NOT EXISTS vault_keys_until ON vault_keys (until);
    CREATE INDEX IF NOT EXISTS vault_keys_holder ON vault_keys (holder)`);
  addColumns(db);
  // One statement is one transaction, and writers take turns.
  const insert = db.prepare(`INSERT OR IGNORE INTO vault_keys (id, key, until, holder, amount, sealed)
    SELECT ?1, ?2, ?3, ?4, ?6, ?7 WHERE ?4 IS NULL OR (SELECT count(*) FROM vault_keys WHERE holder = ?4) < ?5`);
  const find = db.prepare('SELECT key, sealed FROM vault_keys WHERE id = ?');
  const held = db.prepare('SELECT amount FROM vault_keys WHERE holder = ?');
  const remove = db.prepare('DELETE FROM vault_keys WHERE id IN (SELECT value FROM json_each(?))');
  const names = db.prepare('SELECT id FROM vault_keys');
  const ended = db.prepare('DELETE FROM vault_keys WHERE until < ?');
  // Every transaction is flushed to disk, and blocks the thread meanwhile: runs that end together share one.
  const removeTogether = batched(async (names: readonly string[]) => {
    remove.run(JSON.stringify(names));
    return new Map<string, null>();
  });
  const store: TextStore = {
    async insert({ name, key, sealed, untilMs, seat }) {
      const counted = [seat?.holder ?? null, seat?.max ?? null, seat?.amount.toString() ?? null];
      insert.run(name, key, Math.ceil(untilMs), ...counted, sealed);
    },
    async find(name) {
      const { key, sealed } = find.get(name) ?? {};
      if (!(key instanceof Uint8Array)) return null;
      return { key, sealed: sealed instanceof Uint8Array ? sealed : null };
    },
    held: async (holder) => held.all(holder).map(({ amount }) => (amount === null ? null : String(amount))),
    async delete(names) {
      await Promise.all(names.map(removeTogether));
    },
    names: async () => names.all().map(({ id }) => String(id)),
    async deleteEnded() {
      ended.run(Math.floor(now()));
    },
    now: async () => now(),
    async close() {
      db.close();
    },
  };
  return sealedVault(store, keyedHash);
}

/** A file of an earlier release lacks them. */
function addColumns(db: DatabaseSync): void {
  const names = db
    .prepare('PRAGMA table_info(vault_keys)')
    .all()
    .map(({ name }) => name);
  if (!names.includes('sealed')) db.exec('ALTER TABLE vault_keys ADD COLUMN sealed BLOB');
  if (!names.includes('amount')) db.exec('ALTER TABLE vault_keys ADD COLUMN amount TEXT');
}

/** What an operator does about a file that cannot be opened, or is damaged. */
export const vaultRemedy = (file: string): string =>
  `It is ${file}: put it back from its backup, or move it away, which skips the runs that are paid for as lost, uncharged; then start again.`;

/** Reads the file without changing it, beside a running service too. Throws what a start would. */
export function readVaultFile(file: string): { readonly keys: number } {
  const db = new DatabaseSync(file, { timeout: BUSY_MS, readOnly: true });
  try {
    const [found] = db.prepare('PRAGMA quick_check(1)').all();
    const verdict = String(Object.values(found ?? {})[0]);
    if (verdict !== 'ok') throw new Error(verdict);
    return { keys: Number(db.prepare('SELECT count(*) AS keys FROM vault_keys').get()?.keys) };
  } finally {
    db.close();
  }
}
