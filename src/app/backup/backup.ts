// A backup of the embedded tier, beside a running service: the event log as it is at one moment, what is remembered of it,
// and the key file. It gets its name when it is whole, audited and on the disk.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { copyLogFile } from '#src/adapters/event-log/sqlite/copy.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { readKeyFile } from '#src/adapters/signing/key-file.ts';
import type { LogConfig } from '#src/config.ts';
import type { Finding } from '#src/domain/audit/finding.ts';
import type { Manifest } from '#src/domain/backup/manifest.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { findText, flush } from '#src/lib/files/durable.ts';
import { acquireFileLock } from '#src/lib/files/file-lock.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import { pagesOf } from '#src/usecases/audit/export-log.ts';
import { loadKeyRing } from '#src/usecases/signing-keys/key-ring.ts';
import { checkpointPath, eventLogPath, logMemoryPath } from '../log-history.ts';
import { checkStorage, openAuditor, openOperatorLog } from '../operator.ts';
import { BACKUP, flushTree, sha256Of } from './files.ts';

export type BackupOptions = {
  /** A new folder; those above it must exist. */
  readonly folder: string;
  readonly onFinding: (finding: Finding) => void;
};

/** Unfinished backups have this at the end of their name. */
const PARTIAL = '.partial';

/** Throws `OperatorError`, and leaves nothing under the folder's name, if the copy cannot be made or is damaged. */
export async function makeBackup(config: LogConfig, { folder, onFinding }: BackupOptions): Promise<Manifest> {
  demandEmbedded(config);
  if (existsSync(folder)) throw new OperatorError(`${folder} exists: name a new folder`);
  // The log in use, of this configuration; the service has it open all the same.
  await (await openOperatorLog(config)).log.close();
  const partial = `${folder}.${process.pid}${PARTIAL}`;
  rmSync(partial, { recursive: true, force: true });
  try {
    for (const path of [partial, join(partial, 'log'), join(partial, 'keys')])
      mkdirSync(path, { mode: 0o700 });
    await copyFiles(config, partial);
    const log = await audited(partial, onFinding);
    const manifest = await manifestOf(partial, log);
    writeFileSync(join(partial, BACKUP.manifest), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
    flushTree(partial);
    renameSync(partial, folder);
    flush(dirname(folder));
    return manifest;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

export function demandEmbedded({ eventStoreUrl }: LogConfig): void {
  if (eventStoreUrl !== null)
    throw new OperatorError(
      'EVENTSTORE_URL is set: EventStoreDB has a backup procedure of its own; keep a copy of SIGNING_KEYS_FILE beside it',
    );
}

/**
 * In this order: the log has every event that the checkpoint covers, and the key file every key that the log has announced.
 */
async function copyFiles(config: LogConfig, partial: string): Promise<void> {
  const { keyFile } = config;
  const copy = (from: string, to: string) => {
    if (!existsSync(from)) return;
    copyFileSync(from, join(partial, to));
    chmodSync(join(partial, to), 0o600);
  };
  copy(checkpointPath(config), BACKUP.note);
  copy(logMemoryPath(config), BACKUP.memory);
  await copyLogFile(eventLogPath(config), join(partial, BACKUP.log));
  chmodSync(join(partial, BACKUP.log), 0o600);
  copy(keyFile.path, BACKUP.keys);
  readKeyFile(join(partial, BACKUP.keys));
}

/** Reads the whole copy: its checksums, its structure, and what it says. Throws `OperatorError` for damage. */
async function audited(partial: string, onFinding: BackupOptions['onFinding']): Promise<Manifest['log']> {
  const log = await sqliteEventLog({ file: join(partial, BACKUP.log) });
  try {
    let damage = 0;
    const damaged = (finding: Finding) => {
      damage++;
      onFinding(finding);
    };
    await checkStorage(log, { onFinding: damaged });
    if (damage > 0)
      throw new OperatorError(
        'the event log is damaged, and nothing is kept: see relay audit --integrity, and Damage',
      );
    const { findings, events, treeSize } = await auditOf(log, partial, onFinding);
    const { logId, keys } = await loadKeyRing({ log });
    return { id: logId, events, treeSize, keyIds: keys.map(({ keyId }) => keyId), findings };
  } finally {
    await log.close();
  }
}

async function auditOf(log: ScannedLog, partial: string, onFinding: BackupOptions['onFinding']) {
  const note = findText(join(partial, BACKUP.note));
  const head = note === null ? null : parseCheckpoint(note);
  const checkpoints = note === null || head === null ? [] : [{ ...head, source: BACKUP.note, note }];
  const auditor = openAuditor(onFinding, { kept: { keys: null, checkpoints } });
  try {
    for await (const { found } of pagesOf(log, null, await log.lastPosition()))
      for (const scanned of found) {
        if (scanned.kind === 'event') await auditor.take(scanned.event);
        else auditor.takeDamaged(scanned.damage);
      }
    return await auditor.finish();
  } finally {
    auditor.close();
  }
}

async function manifestOf(partial: string, log: Manifest['log']): Promise<Manifest> {
  const files: Manifest['files'] = {};
  for (const name of [BACKUP.log, BACKUP.note, BACKUP.memory, BACKUP.keys]) {
    const path = join(partial, name);
    if (existsSync(path)) files[name] = { sha256: await sha256Of(path), bytes: statSync(path).size };
  }
  const createdAt = new Date().toISOString();
  return { format: 'webhook-relay-backup', version: 1, createdAt, release: SERVICE.version, log, files };
}

/**
 * Backups in `folder`, each named by its time, of which `keep` are kept: the newest. Removes what earlier runs have not
 * finished. One process at a time.
 */
export async function makeDatedBackup(
  config: LogConfig,
  { folder, keep, onFinding }: BackupOptions & { readonly keep: number },
): Promise<{ readonly manifest: Manifest; readonly path: string; readonly removed: readonly string[] }> {
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
  const lock = acquireFileLock(join(folder, 'backup'));
  if (lock === null) throw new OperatorError(`another process makes a backup in ${folder}`);
  try {
    const remove = (name: string) => rmSync(join(folder, name), { recursive: true, force: true });
    readdirSync(folder)
      .filter((name) => name.endsWith(PARTIAL))
      .forEach(remove);
    const path = join(
      folder,
      new Date()
        .toISOString()
        .replace(/\.\d+Z$/, 'Z')
        .replaceAll(':', '-'),
    );
    const manifest = await makeBackup(config, { folder: path, onFinding });
    const dated = readdirSync(folder).filter((name) => DATED.test(name));
    const removed = dated.sort().slice(0, Math.max(0, dated.length - keep));
    removed.forEach(remove);
    return { manifest, path, removed };
  } finally {
    lock.release();
  }
}

const DATED = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/;
