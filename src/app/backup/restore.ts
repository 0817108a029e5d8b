// Puts a backup of the embedded tier in place, while no process serves the event log. What was there is kept under another
// name. Interrupted at any moment, it leaves either log whole, or none beside a key file that remembers one, without which
// the service does not start: run it again.
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { isDeepStrictEqual } from 'node:util';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { acquireProcessLock, LogInUse } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { keyFileWith, readKeyFile } from '#src/adapters/signing/key-file.ts';
import type { LogConfig } from '#src/config.ts';
import {
  type InPlace,
  judgeRestore,
  type Manifest,
  type RestoreVerdict,
} from '#src/domain/backup/manifest.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { findText, flush } from '#src/lib/files/durable.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import type { StoredKey } from '#src/ports/key-store.ts';
import { containsEvent } from '#src/usecases/audit/export-log.ts';
import { loadKeyRing } from '#src/usecases/signing-keys/key-ring.ts';
import { checkpointPath, eventLogPath, logMemoryPath } from '../log-history.ts';
import { openOperatorLog } from '../operator.ts';
import { demandEmbedded } from './backup.ts';
import { BACKUP, readBackup } from './files.ts';

export type Restored = {
  readonly manifest: Manifest;
  /** Accepted by the operator. */
  readonly losses: readonly string[];
  /** New names of what was in place. */
  readonly aside: readonly string[];
};

/** The verdict forbids it: nothing was changed. */
export class NotRestored extends OperatorError {
  readonly verdict: RestoreVerdict;
  constructor(verdict: RestoreVerdict) {
    const { impossible, losses } = verdict;
    super(
      impossible.length > 0
        ? `the backup does not belong there: ${impossible.join('; ')}`
        : `the backup is older than what is in place: ${losses.join('; ')}. Calls that were answered since then would be sent and charged again. Use a newer backup; --older-log restores this one all the same`,
    );
    this.verdict = verdict;
  }
}

/** `olderLog`: the operator accepts losses. Throws `NotRestored`, or `OperatorError` for a backup that is not whole. */
export async function restoreBackup(
  config: LogConfig,
  { folder, olderLog }: { readonly folder: string; readonly olderLog: boolean },
): Promise<Restored> {
  demandEmbedded(config);
  const { dataDir } = config;
  const manifest = await readBackup(folder);
  if (!existsSync(dataDir)) mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = await acquireProcessLock(join(dataDir, 'events.lock'), 'alone').catch(
    (cause: unknown): never => {
      if (!(cause instanceof LogInUse)) throw cause;
      throw new OperatorError(`processes serve the event log in ${dataDir}: stop all of them, then restore`, {
        cause,
      });
    },
  );
  try {
    const found = await inPlace(config, folder);
    const verdict = judgeRestore(found, manifest.log);
    const { impossible, losses } = verdict;
    if (impossible.length > 0 || (losses.length > 0 && !olderLog)) throw new NotRestored(verdict);
    const aside = putInPlace(config, folder, found, manifest);
    await (await openOperatorLog(config)).log.close();
    return { manifest, losses, aside };
  } finally {
    lock.release();
  }
}

async function inPlace(config: LogConfig, folder: string): Promise<InPlace> {
  const { keyFile } = config;
  const note = findText(checkpointPath(config));
  const kept = readKeyFile(join(folder, BACKUP.keys));
  const keys = existsSync(keyFile.path) ? readKeyFile(keyFile.path) : null;
  return {
    log: await logInPlace(eventLogPath(config), join(folder, BACKUP.log)),
    checkpointSize: note === null ? null : (parseCheckpoint(note)?.size ?? null),
    keys: keys && {
      isSameSecret: keys.secretCheck === kept.secretCheck,
      keyIds: keys.keys.map(({ keyId }) => keyId),
      logId: keys.eventLog?.id ?? null,
      hasSameKeys: isDeepStrictEqual(idsOf(kept.keys), idsOf(keys.keys)),
    },
  };
}

const idsOf = (keys: readonly StoredKey[]): readonly string[] => keys.map(({ keyId }) => keyId).sort();

async function logInPlace(file: string, backupFile: string): Promise<InPlace['log']> {
  if (!existsSync(file) || statSync(file).size === 0) return null;
  try {
    return await withLog(file, async (log) => {
      const { logId } = await loadKeyRing({ log });
      const last = await lastOf(log);
      const events = Number(last?.position ?? 0);
      const isInBackup =
        last === null || (await withLog(backupFile, (backup) => containsEvent(backup, last)));
      return { id: logId, events, isInBackup };
    });
  } catch (error) {
    // Damaged, or no event log: kept under another name.
    if (error instanceof EventLogUnavailable || error instanceof OperatorError) return 'unreadable';
    throw error;
  }
}

async function withLog<T>(file: string, work: (log: ScannedLog) => Promise<T>): Promise<T> {
  const log = await sqliteEventLog({ file });
  try {
    return await work(log);
  } finally {
    await log.close();
  }
}

/** Positions have no gaps, so the last event is the one after the position before the head's. */
async function lastOf(log: ScannedLog) {
  const head = await log.lastPosition();
  if (head === null) return null;
  const before = String(Number(head) - 1).padStart(head.length, '0');
  const [last] = await log.readAll({ after: Number(head) > 1 ? before : null, max: 1 });
  return last ?? null;
}

/** The key file first and the log last: without the log, the key file prevents a start. */
function putInPlace(config: LogConfig, folder: string, found: InPlace, { log, files }: Manifest): string[] {
  const { dataDir, keyFile } = config;
  const file = eventLogPath(config);
  const stamp = new Date().toISOString().replace(/[-:.]/g, '');
  const aside: string[] = [];
  const setAside = (path: string, move = renameSync) => {
    if (!existsSync(path)) return;
    aside.push(`${path}.${stamp}`);
    move(path, `${path}.${stamp}`);
  };
  const owner = process.getuid?.() === 0 ? statSync(dataDir) : null;
  const beside = (to: string, mode: number, write: (file: string) => void) => {
    const file = `${to}.restoring`;
    write(file);
    chmodSync(file, mode);
    if (owner !== null) chownSync(file, owner.uid, owner.gid);
    flush(file);
    return () => {
      renameSync(file, to);
      flush(dirname(to));
    };
  };
  const copy = (name: string, to: string, mode: number) =>
    beside(to, mode, (file) => copyFileSync(join(folder, name), file));
  if (found.keys === null) copy(BACKUP.keys, keyFile.path, 0o600)();
  else if (!found.keys.hasSameKeys) {
    // Its keys sign with the marks of the older file. The other keys show what newer checkpoints they have signed.
    const text = keyFileWith(join(folder, BACKUP.keys), keyFile.path);
    const place = beside(keyFile.path, 0o600, (file) => writeFileSync(file, text, { mode: 0o600 }));
    setAside(keyFile.path, linkSync);
    place();
  }
  // The newer note stays: it shows what a restored log lacks.
  if (BACKUP.note in files && (found.checkpointSize ?? -1) < log.treeSize)
    copy(BACKUP.note, checkpointPath(config), 0o644)();
  const memory = logMemoryPath(config);
  if (BACKUP.memory in files && !existsSync(memory)) copy(BACKUP.memory, memory, 0o600)();
  const place = copy(BACKUP.log, file, 0o600);
  for (const tail of ['', '-wal', '-shm', '.damaged']) setAside(file + tail);
  place();
  rmSync(`${file}.restoring`, { force: true });
  return aside;
}
