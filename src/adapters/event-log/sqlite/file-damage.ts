// Damage to the structure of the file. Nothing is appended after it was found, not after a restart either: a stream could seem
// to lack events that it has, and an answered call would be sent again.
import { isSqliteDamage } from '#src/lib/sqlite-error.ts';
import { EventDamaged, EventLogUnavailable, LogDamaged } from '#src/ports/event-log.ts';
import type { DamageMark } from './damage-mark.ts';

export type FileDamage = ReturnType<typeof fileDamage>;

/** `onFound`: called with the first that this process finds. */
export function fileDamage(mark: DamageMark, onFound: (damage: LogDamaged) => void) {
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
