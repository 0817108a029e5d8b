// What the operator reads where the service cannot start, or ends by an error.
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { userName } from '#src/config-checks.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { isSqliteBusy } from '#src/lib/sqlite-error.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { EventLogUnavailable, EventUnreadable, LogDamaged } from '#src/ports/event-log.ts';

/** Errors of the system that concern the environment. ENOENT only of a folder: no file is named that a start needs and does not make. */
const PROBLEMS: Readonly<Record<string, (user: string) => string>> = {
  EACCES: (user) => `is not accessible to user ${user}: correct its owner and mode, or those of its folder`,
  EPERM: (user) => `may not be changed by user ${user}: correct its owner and attributes`,
  EROFS: () => 'is on a read-only file system: mount it for writing',
  ENOSPC: () => 'cannot be written: the disk is full',
  EDQUOT: () => 'cannot be written: the disk quota is used up',
  EIO: () => 'cannot be read or written: the disk reports an error',
  ENOTDIR: () => 'is not below a folder',
  EEXIST: () => 'is not a folder',
  EISDIR: () => 'is a folder, where a file is expected',
  ELOOP: () => 'is a symbolic link to itself',
  ENAMETOOLONG: () => 'is too long a path',
  EMFILE: () => 'cannot be opened: this process has too many files open (raise LimitNOFILE)',
  ENFILE: () => 'cannot be opened: this machine has too many files open',
};

/** A folder is made with those above it: where that ends with ENOENT, the file system takes none (/proc). */
const missing = (error: Error) =>
  'syscall' in error && error.syscall === 'mkdir'
    ? () => 'cannot be created: its file system takes no folders; set DATA_DIR to a folder on a disk'
    : undefined;

/**
 * The error as an `OperatorError` if it is one of the system about a file, or of a damaged or unavailable event log; otherwise
 * as it is. `place`: the file, if the error does not name it.
 */
export function startError(error: unknown, place: string | null = null): unknown {
  if (error instanceof OperatorError || !(error instanceof Error)) return error;
  if (error instanceof EventUnreadable || error instanceof LogDamaged)
    return new OperatorError(error.message, { cause: error });
  const code = systemCode(error);
  const problem = code === null ? undefined : code === 'ENOENT' ? missing(error) : PROBLEMS[code];
  const path = 'path' in error && typeof error.path === 'string' ? error.path : place;
  if (problem !== undefined && path !== null)
    return new OperatorError(`${path} ${problem(userName())}`, { cause: error });
  if (error instanceof EventLogUnavailable) {
    const why = isSqliteBusy(error.cause) ? ': another process keeps it locked' : '';
    return new OperatorError(`${error.message}${why}; start again when it is available`, { cause: error });
  }
  // Deno states the missing permission and the option that grants it.
  if (error.name === 'NotCapable') return new OperatorError(error.message, { cause: error });
  return error;
}

/** The last words of a process: one line for the operator, or the stack of a defect. */
export const lastWords = (error: unknown): string =>
  error instanceof OperatorError ? error.message : String((error as Error)?.stack ?? error);

/** Throws `OperatorError` for the first of these that exists and is no file, or that this process may not write. */
export function demandWritable(files: readonly string[]): void {
  for (const file of files) {
    if (!existsSync(file)) continue;
    if (!statSync(file).isFile()) throw new OperatorError(`${file} is no file: move it away`);
    try {
      accessSync(file, constants.W_OK);
    } catch (cause) {
      const why =
        systemCode(cause) === 'EROFS' ? ' (read-only file system)' : ': restore its owner with chown';
      throw new OperatorError(`${file} is not writable by user ${userName()}${why}`, { cause });
    }
  }
}

/** The variables that describe a payment, by the adapters' names of them. */
export const TERM_VARIABLES = {
  network: 'X402_NETWORK',
  asset: 'X402_ASSET',
  priceUsd: 'X402_PRICE',
  rpcUrl: 'X402_RPC_URL',
} as const;
