// The damaged events that this process has found: each is logged once, and health names the first.
import { DAMAGE_CAUSE, type Damage, damagedCount, REMEDY } from '#src/domain/damage.ts';
import type { LogHealth, LogProblem } from '#src/domain/monitoring/health.ts';
import { EventDamaged } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';

/** Places that are remembered, and of those that are logged. */
const MOST = { kept: 10_000, logged: 20 };

export type KnownDamage = ReturnType<typeof knownDamage>;

/** `where`: what the log lines name beside the place. */
export function knownDamage(logger: Logger | undefined, where: Readonly<Record<string, string>> = {}) {
  const places = new Map<string, Damage>();
  let count = 0;
  let first: Damage | null = null;

  function note(damage: Damage): void {
    const known = places.get(damage.from);
    const isNew = known === undefined && places.size < MOST.kept;
    // A scan finds the name of an event that a read found without.
    if (!isNew && (known?.stream !== null || damage.stream === null)) return;
    places.set(damage.from, damage);
    if (first === null || damage.from <= first.from) first = damage;
    if (!isNew) return;
    count += damagedCount(damage);
    if (places.size > MOST.logged) return;
    const { problem, ...place } = damage;
    logger?.error('the event log has damage: what needs it fails, other calls are executed', {
      ...where,
      ...place,
      problem: DAMAGE_CAUSE[problem],
      remedy: REMEDY.whole,
      ...(places.size === MOST.logged && { more: 'further damage is not logged' }),
    });
  }

  return {
    note,
    /** Of what a read threw. */
    noteError(error: unknown): void {
      if (error instanceof EventDamaged) note(error.damage);
    },
    /** `problem`: why the log accepts no events; null: it does. */
    health: (problem: LogProblem | null): LogHealth => ({
      ...(problem === null ? { ok: true } : { ok: false, problem }),
      ...(first !== null && { damaged: { count, first } }),
    }),
  };
}
