// Damage to the structure of the file. Nothing is appended after it was found: a stream could seem to lack events that it
// has, and an answered call would be sent again.
import { isSqliteDamage } from '#src/lib/sqlite-error.ts';
import { EventDamaged, EventLogUnavailable, LogDamaged } from '#src/ports/event-log.ts';

export type FileDamage = ReturnType<typeof fileDamage>;

/** `onFound`: called with the first. */
export function fileDamage(onFound: (damage: LogDamaged) => void) {
  let found: LogDamaged | null = null;
  return {
    /** Of what a read or an append threw. Returns it as the caller gets it. */
    noted(error: unknown): unknown {
      if (!isLogDamage(error)) return error;
      const damage = error instanceof LogDamaged ? error : new LogDamaged({ cause: rootOf(error) });
      if (found === null) {
        found = damage;
        onFound(damage);
      }
      return damage;
    },
    /** Throws `LogDamaged` if any was found. */
    assertNone(): void {
      if (found !== null) throw found;
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
