// The clock of the store: of the database, or, of an embedded store, the own one without its jumps. By a clock that is set
// wrong, runs would start early or late and be sold for the wrong time.
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { type Vault, VaultUnavailable } from '#src/ports/vault.ts';

export type SharedClockDeps = {
  readonly vault: Pick<Vault, 'now'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly logger: Pick<Logger, 'condition'>;
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
    const { vault, clock, logger } = this.#deps;
    const shared = await vault.now().catch((cause: unknown): never => {
      const isDamaged = cause instanceof VaultUnavailable && cause.isDamaged;
      logger.condition('schedules', isDamaged ? 'vault_damaged' : 'vault_unavailable', {}, cause);
      throw cause;
    });
    const differsMs = shared === null ? 0 : Math.round(clock.now() - shared);
    if (Math.abs(differsMs) > RUN_TIMES.clockToleranceMs) {
      this.#differedAt = clock.monotonic();
      logger.condition('schedules', 'wrong_clock', { differsMs });
    }
    if (this.#differedAt !== null && clock.monotonic() - this.#differedAt < RUN_TIMES.clockAgreesMs)
      return false;
    this.#differedAt = null;
    logger.condition('schedules', null);
    return true;
  }
}
