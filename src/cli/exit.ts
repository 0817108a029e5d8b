// How a command ends.

export const EXIT = { good: 0, foundWrong: 1, couldNotRun: 2 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** A command tells how it ended; one that says nothing ended well. */
export type End = (code: ExitCode) => void;

/** What was asked for cannot be done: exit 2. The message is for a person. */
export class CannotRun extends Error {}

/** It was done, and something is not as it should be: exit 1. The message is for a person. */
export class FoundWrong extends Error {}

/** Of a command that threw. */
export const exitOf = (error: unknown): ExitCode =>
  error instanceof FoundWrong ? EXIT.foundWrong : EXIT.couldNotRun;

/** The whole of what a thrown value says, on one line, without a stack. */
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

/** `ENOENT` and the like; null where there is none. */
export function systemCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
