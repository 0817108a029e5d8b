// A file beside the log's file that states damage to its structure: later starts and other processes append nothing either,
// until the whole log was read without such damage.
import { rmSync } from 'node:fs';
import { findText, replaceFile } from '#src/lib/files/durable.ts';
import { iso } from '#src/lib/iso.ts';
import type { Logger } from '#src/ports/logger.ts';

export type DamageMark = ReturnType<typeof damageMark>;

/** None of its functions throws. */
export function damageMark(file: string, now: () => number, logger: Logger | undefined) {
  const path = `${file}.damaged`;
  return {
    /** What was found, and when; null: there is no mark. */
    read(): string | null {
      try {
        return findText(path)?.trim() ?? null;
      } catch {
        return `see ${path}`;
      }
    },
    write(problem: string): void {
      try {
        replaceFile(path, `${problem} (found at ${iso(now())})\n`);
      } catch (cause) {
        const effect = 'after a restart, calls are taken until the damage is found again';
        logger?.error(`damage to the event log cannot be remembered: ${effect}`, { file: path, cause });
      }
    },
    remove(): void {
      try {
        rmSync(path, { force: true });
      } catch (cause) {
        logger?.error('no damage to the event log is left: delete the file that states it', {
          file: path,
          cause,
        });
      }
    },
  };
}
