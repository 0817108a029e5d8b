// Damage to the structure of the file. Nothing is appended after it was found, by no process and after no restart, until the
// whole log was read without it: a stream could seem to lack events that it has, and an answered call would be sent again.
import { rmSync } from 'node:fs';
import { findText, replaceFile } from '#src/lib/files/durable.ts';
import { iso } from '#src/lib/iso.ts';
import { isSqliteDamage } from '#src/lib/sqlite-error.ts';
import { EventDamaged, EventLogUnavailable, LogDamaged } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';

export type FileDamage = ReturnType<typeof fileDamage>;

type FileDamageOptions = {
  /** The log's file. */
  readonly file: string;
  readonly now: () => number;
  readonly logger: Logger | undefined;
  /** Called with the first that this process finds. */
  readonly onFound: (damage: LogDamaged) => void;
};

export function fileDamage({ file, now, logger, onFound }: FileDamageOptions) {
  const mark = damageMark(`${file}.damaged`, now, logger);
  /** By this process. */
  let found: LogDamaged | null = null;
  /** What the mark states, as it was last thrown. */
  let remembered: LogDamaged | null = null;
  return {
    /** Of what a read or an append threw. Returns it as the caller gets it. */
    noted(error: unknown): unknown {
      if (!isLogDamage(error)) return error;
      const damage = error instanceof LogDamaged ? error : new LogDamaged({ cause: rootOf(error) });
      if (found === null && damage !== remembered) {
        found = damage;
        mark.write(damage.problem);
        onFound(damage);
      }
      return damage;
    },
    /** Throws `LogDamaged` if this process has found any, or the mark states some. */
    assertNone(): void {
      if (found !== null) throw found;
      const stated = mark.read();
      if (stated === null) return;
      if (remembered?.problem !== stated) remembered = new LogDamaged({}, stated);
      throw remembered;
    },
    /** Before the whole log is read. Returns a function to call if that found no damage: removes the mark as it was then. */
    wholeRead() {
      const before = mark.read();
      return (): void => {
        // What this process has found may not show in a scan.
        if (before !== null && found === null && mark.read() === before) mark.remove();
      };
    },
  };
}

/** Also of the error that an append threw for it. Not damage to single events. */
export function isLogDamage(error: unknown): boolean {
  if (error instanceof LogDamaged) return true;
  if (error instanceof EventDamaged) return false;
  return isSqliteDamage(rootOf(error));
}

const rootOf = (error: unknown): unknown => (error instanceof EventLogUnavailable ? error.cause : error);

/** A file beside the log's file that states damage to its structure. None of its functions throws. */
function damageMark(path: string, now: () => number, logger: Logger | undefined) {
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
