// For commands next to a running service: no process lock is taken, because the event log is safe for several processes and
// a lock would prevent a service from starting.

import { rmSync } from 'node:fs';
import { sqliteScratch } from '#src/adapters/audit/scratch-sqlite.ts';
import { sqliteAuditState } from '#src/adapters/audit/state-sqlite.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { pinoLogger } from '#src/adapters/logging/pino.ts';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import { ed25519VerifyInThreadPool } from '#src/adapters/signing/ed25519.ts';
import { hmacKeyedHash } from '#src/adapters/signing/hash.ts';
import { keyFileStore, readKeyFile } from '#src/adapters/signing/key-file.ts';
import type { Config, LogConfig } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { sizeOf } from '#src/lib/files/durable.ts';
import { acquireFileLock, type FileLock } from '#src/lib/files/file-lock.ts';
import { mlDsa44Verify } from '#src/lib/ml-dsa.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { EventDamaged, LogDamaged } from '#src/ports/event-log.ts';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import { type AuditDeps, Auditor } from '#src/usecases/audit/audit-log.ts';
import { type Integrity, type IntegrityDeps, integrityOf } from '#src/usecases/audit/check-integrity.ts';
import type { ScratchRow } from '#src/usecases/audit/stream-states.ts';
import { loggerOver } from '#src/usecases/process/condition.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import type { ChangeKeysDeps } from '#src/usecases/signing-keys/change-keys.ts';
import { eventLogPath, type LogHistory, logHistory } from './log-history.ts';
import { eventStoreLog } from './stores.ts';

export { createKeyFile, readKeyFile } from '#src/adapters/signing/key-file.ts';

export class NoEventLog extends OperatorError {
  constructor(file: string) {
    super(`there is no event log at ${file}: DATA_DIR must be that of the service`);
  }
}

export type OperatorLog = JournalDeps & { readonly log: ScannedLog };

/** A person waits for the answer. */
const CONNECT_MS = 5000;

/** Writes to standard error. */
export const operatorLogger = (level: 'warn' | 'silent'): Logger =>
  loggerOver(pinoLogger({ level, to: 'stderr' }), systemClock());

/**
 * Creates nothing: throws `NoEventLog` if the file is missing or empty, `NotTheLogInUse` if the log is not the one in use,
 * `NoEventStore` if the server does not answer. Without a `logger`, log lines go to standard error. The caller closes the log.
 */
export async function openOperatorLog(
  config: LogConfig,
  logger: Logger = operatorLogger('warn'),
): Promise<OperatorLog> {
  const { eventStoreUrl } = config;
  // Who may read the log, such as an auditor, need not read the key file.
  const history = logHistory(config, { unreadable: () => null });
  const log =
    eventStoreUrl === null
      ? await embeddedLog(eventLogPath(config), history)
      : await eventStoreLog(eventStoreUrl, logger, CONNECT_MS);
  try {
    await history.demandLogInUse(log);
  } catch (error) {
    // Which log a damaged one is cannot be compared. A command that needs the damaged part fails at it; audits list it.
    if (!(error instanceof EventDamaged) && !(error instanceof LogDamaged)) {
      await log.close();
      throw error;
    }
  }
  return { log, clock: systemClock(), entropy: systemEntropy(), logger };
}

/** Throws as `openOperatorLog` does. The caller closes the log. */
export const openOperatorKeys = async (config: Config): Promise<ChangeKeysDeps> => ({
  ...(await openOperatorLog(config)),
  store: keyFileStore(config.keyFile.path),
});

/** Hashes with the secret of the key file, which names the streams of idempotency keys. */
export const openKeyedHash = ({ keyFile }: LogConfig): KeyedHash =>
  hmacKeyedHash(readKeyFile(keyFile.path).hmacSecret);

async function embeddedLog(file: string, history: LogHistory): Promise<ScannedLog> {
  history.beforeOpening(file);
  if (!sizeOf(file)) throw new NoEventLog(file);
  return sqliteEventLog({ file });
}

type AuditorOptions = {
  readonly kept?: AuditDeps['kept'] | undefined;
  /** Continues the audit that it is of, and keeps this one in it. */
  readonly stateFile?: string | undefined;
};

/**
 * Throws if there is no room for temporary files, and an `OperatorError` if the state's file is damaged, in use, or another
 * file.
 */
export function openAuditor(
  onFinding: AuditDeps['onFinding'],
  { kept, stateFile }: AuditorOptions = {},
): Auditor {
  const primitives = { ed25519Verify: ed25519VerifyInThreadPool(), mlDsa44Verify };
  const deps = { primitives, onFinding, ...(kept && { kept }) };
  if (stateFile === undefined) return new Auditor({ ...deps, scratch: sqliteScratch<ScratchRow>() });
  const scratch = sqliteAuditState<ScratchRow>(stateFile);
  try {
    const { save, isNew } = scratch;
    return new Auditor({ ...deps, scratch, state: { release: SERVICE.version, save, isNew } });
  } catch (error) {
    scratch.close();
    throw error;
  }
}

/** Throws if there is no room for temporary files. */
export async function checkStorage(
  log: ScannedLog,
  options: Omit<IntegrityDeps, 'log' | 'scratch'>,
): Promise<Integrity> {
  const scratch = sqliteScratch<ScratchRow>();
  try {
    return await integrityOf({ log, scratch, ...options });
  } finally {
    scratch.close();
  }
}

/**
 * Lets one process at a time write the export `path`, by a lock file next to it, which the kernel frees when the process
 * ends. Returns null at once if another process writes it; throws if no lock file can be created.
 */
export function lockExport(path: string): FileLock | null {
  const lock = acquireFileLock(path);
  if (lock === null) return null;
  return {
    ...lock,
    release() {
      rmSync(lock.file, { force: true });
      lock.release();
    },
  };
}
