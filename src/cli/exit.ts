// Exit codes, and the two kinds of failure that a command ends with. `process.exitCode` is the code so far.

import { CommanderError } from 'commander';
import { isDefect } from '#src/lib/defect.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { isOutage } from '#src/ports/outage.ts';

/** `open`: nothing is wrong, and something is left to do. */
export const EXIT = { good: 0, foundWrong: 1, couldNotRun: 2, open: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command cannot run: exit 2. The message is for a person. */
export class CannotRun extends OperatorError {}

/** The command ran and found a problem: exit 1. The message is for a person. */
export class FoundWrong extends OperatorError {}

/** The action of a command: the process exits with 1 if `work` returns false. */
export const exiting =
  <A extends unknown[]>(work: (...args: A) => unknown) =>
  async (...args: A): Promise<void> => {
    if ((await work(...args)) === false) process.exitCode = EXIT.foundWrong;
  };

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

/** What is printed of an error: one line for a person, or the stack of a defect. */
export const errorText = (error: unknown): string =>
  isKnown(error) ? oneLine(error) : String((error as Error)?.stack ?? error);

/** Of the operator, a part that is unavailable, or the system; anything else is a defect of this program. */
function isKnown(error: unknown): boolean {
  if (error instanceof OperatorError || isOutage(error)) return true;
  if (isDefect(error)) return false;
  const code = systemCode(rootCause(error));
  return code !== null && !code.startsWith('ERR_');
}

/** The innermost cause: what wraps the words of a driver repeats whole statements. */
export function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? rootCause(error.cause) : error;
}
