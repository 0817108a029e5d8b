// Exit codes, and the two kinds of failure that a command ends with.
import type { Command } from 'commander';

export const EXIT = { good: 0, foundWrong: 1, couldNotRun: 2 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Sets the exit code of the process; without a call it is 0. */
export type End = (code: ExitCode) => void;

/** The command cannot run: exit 2. The message is for a person. */
export class CannotRun extends Error {}

/** The command ran and found a problem: exit 1. The message is for a person. */
export class FoundWrong extends Error {}

/** Runs `work` as the action of `command`; the exit code is 1 if it returns false. */
export function onAction<A extends unknown[]>(
  command: Command,
  end: End,
  work: (...args: A) => unknown,
): void {
  command.action(async (...args: A) => {
    if ((await work(...args)) === false) end(EXIT.foundWrong);
  });
}

/** Exit code of a command that threw. */
export const exitOf = (error: unknown): ExitCode =>
  error instanceof FoundWrong ? EXIT.foundWrong : EXIT.couldNotRun;

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
