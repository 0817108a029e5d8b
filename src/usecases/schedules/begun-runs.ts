// The runs that a process has begun and whose end it does not know: what it looks at again, whatever the rows show.
import type { Ticket } from '#src/domain/schedule/state.ts';
import type { Clock } from '#src/ports/clock.ts';

/** Between two attempts of a run that cannot be executed now. */
const AGAIN_MS = 5000;

type Begun = {
  readonly scheduleId: string;
  /** When it is tried again: monotonic ms. */
  readonly again: number;
  /** Why it could not be executed, a code; null: it is not known. */
  readonly reason: string | null;
  /** An execution failed, and may continue behind its answer. */
  readonly continues: boolean;
};

export class BegunRuns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By job. */
  readonly #begun = new Map<string, Begun>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  find(jobId: string): Begun | null {
    return this.#begun.get(jobId) ?? null;
  }

  /** Whether a run is due to be tried again; null: it was not begun here. */
  isDueAgain(jobId: string): boolean | null {
    const begun = this.find(jobId);
    return begun && this.#clock.monotonic() >= begun.again;
  }

  /** These schedules, and those of the runs that are due to be tried again: rows may show one as over before its keys are deleted. */
  withDueAgain(scheduleIds: readonly string[]): readonly string[] {
    const again = [...this.#begun].filter(([jobId]) => this.isDueAgain(jobId) === true);
    return [...new Set([...scheduleIds, ...again.map(([, { scheduleId }]) => scheduleId)])];
  }

  /** It is tried again after a while. */
  remember(
    jobId: string,
    scheduleId: string,
    facts: Partial<Pick<Begun, 'reason' | 'continues'>> = {},
  ): void {
    const before = this.find(jobId) ?? { reason: null, continues: false };
    const again = this.#clock.monotonic() + AGAIN_MS;
    this.#begun.set(jobId, { ...before, ...facts, scheduleId, again });
  }

  /** The run is over. */
  forget(jobId: string): void {
    this.#begun.delete(jobId);
  }

  /** The runs of the schedule that are not over are these. */
  forgetOthers(scheduleId: string, tickets: readonly Ticket[]): void {
    for (const [jobId, begun] of this.#begun)
      if (begun.scheduleId === scheduleId && !tickets.some((ticket) => ticket.jobId === jobId))
        this.forget(jobId);
  }
}
