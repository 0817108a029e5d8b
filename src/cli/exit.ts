// Exit codes, and the two kinds of failure that a command ends with. `process.exitCode` is the code so far.
import { CommanderError } from 'commander';

export const EXIT = { good: 0, foundWrong: 1, couldNotRun: 2 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command cannot run: exit 2. The message is for a person. */
export class CannotRun extends Error {}

/** The command ran and found a problem: exit 1. The message is for a person. */
export class FoundWrong extends Error {}

/** The action of a command: the process exits with 1 if `work` returns false. */
export const exiting =
  <A extends unknown[]>(work: (...args: A) => unknown) =>
  async (...args: A): Promise<void> => {
    if ((await work(...args)) === false) process.exitCode = EXIT.foundWrong;
  };

/** Exit code of a command that threw. */
export function exitOf(error: unknown): ExitCode {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.good;
  return error instanceof FoundWrong ? EXIT.foundWrong : EXIT.couldNotRun;
}

/** The message of a thrown value on one line, without a stack. */
export function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (
    message
      .split(/\s*\n\s*/)
      .filter((line) => line !== '')
      .join('; ')
      .replace(':;', ':') || 'unknown failure'
  );
}

/** The code of a system error, such as `ENOENT`; null if it has none. */
export function systemCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
