// What the operator reads where the service cannot start, or ends by an error.
import { accessSync, constants, existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { OperatorError } from '#src/lib/operator-error.ts';
import { systemCode } from '#src/lib/system-error.ts';

/** Errors of the system that concern the environment. Not ENOENT: nothing that a start needs and does not make is named. */
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

/** The error as an `OperatorError` if it is one of the system about a file; otherwise as it is. */
export function startError(error: unknown): unknown {
  if (error instanceof OperatorError || !(error instanceof Error)) return error;
  const code = systemCode(error);
  const problem = code === null ? undefined : PROBLEMS[code];
  const path = 'path' in error && typeof error.path === 'string' ? error.path : null;
  if (problem !== undefined && path !== null)
    return new OperatorError(`${path} ${problem(userName())}`, { cause: error });
  // Deno states the missing permission and the option that grants it.
  if (error.name === 'NotCapable') return new OperatorError(error.message, { cause: error });
  return error;
}

/** The last words of a process: one line for the operator, or the stack of a defect. */
export const lastWords = (error: unknown): string =>
  error instanceof OperatorError ? error.message : String((error as Error)?.stack ?? error);

/** Throws `OperatorError` for the first of these files that exists and that this process may not write. */
export function demandWritable(files: readonly string[]): void {
  for (const file of files) {
    if (!existsSync(file)) continue;
    try {
      accessSync(file, constants.W_OK);
    } catch (cause) {
      const why = systemCode(cause) === 'EROFS' ? ' (read-only file system)' : '';
      const text = `${file} is not writable by user ${userName()}${why}: restore its owner with chown`;
      throw new OperatorError(text, { cause });
    }
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
