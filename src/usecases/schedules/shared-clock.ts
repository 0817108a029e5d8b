// The clock of the store: of the database, or, of an embedded store, the own one without its jumps. By a clock that is set
// wrong, runs would start early or late and be sold for the wrong time.
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Vault } from '#src/ports/vault.ts';
import type { Conditions } from '#src/usecases/process/condition.ts';

export type SharedClockDeps = {
  readonly vault: Pick<Vault, 'now'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly conditions: Pick<Conditions, 'set'>;
};

export class SharedClock {
  readonly #deps: SharedClockDeps;
  /** When the clocks have differed last, monotonic ms; null: they agree. */
  #differedAt: number | null = null;

  constructor(deps: SharedClockDeps) {
    this.#deps = deps;
  }

  /** false: the clocks differ, or have differed in the last minute. Throws `VaultUnavailable`. */
  async agrees(): Promise<boolean> {
    const { vault, clock, conditions } = this.#deps;
    const shared = await vault.now();
    const differsMs = shared === null ? 0 : Math.round(clock.now() - shared);
    if (Math.abs(differsMs) > RUN_TIMES.clockToleranceMs) {
      this.#differedAt = clock.monotonic();
      conditions.set('schedules', 'wrong_clock', { differsMs });
    }
    if (this.#differedAt === null) return true;
    if (clock.monotonic() - this.#differedAt < RUN_TIMES.clockAgreesMs) return false;
    this.#differedAt = null;
    conditions.set('schedules', null);
    return true;
  }
}
